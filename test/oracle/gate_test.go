package oracle

import (
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// A gate gives its verbs, or denies, only while its condition holds on what is stored, and only on the object that was addressed.
func TestGates(t *testing.T) {
	own := Place{Group: "apps", Resource: "deployments"}
	event := func(old, object string) *Event {
		e := &Event{}
		if old != "" {
			e.Old = []byte(old)
		}
		if object != "" {
			e.New = []byte(object)
		}
		return e
	}
	const with, without = `{"metadata":{"labels":{"app":"a","tier":"x"}}}`, `{"metadata":{"labels":{"tier":"y"}}}`
	twin := Place{Group: "extensions", Resource: "deployments"}
	for name, c := range map[string]struct {
		on     int
		effect v1alpha1.PolicyEffect
		at     Place
		event  *Event
		holds  bool
		denied bool
	}{
		"label":                   {0, v1alpha1.PolicyAllow, own, event("", with), true, false},
		"no label":                {0, v1alpha1.PolicyAllow, own, event(with, without), false, false},
		"few labels":              {1, v1alpha1.PolicyAllow, own, event(with, without), true, false},
		"many labels":             {1, v1alpha1.PolicyAllow, own, event(without, with), false, false},
		"another group":           {0, v1alpha1.PolicyAllow, twin, event("", with), true, false},
		"denied in another group": {0, v1alpha1.PolicyDeny, twin, event("", with), false, true},
		"labels stay":             {2, v1alpha1.PolicyAllow, own, event(with, with), true, false},
		"labels change":           {2, v1alpha1.PolicyAllow, own, event(with, without), false, false},
		"labels of a new object":  {2, v1alpha1.PolicyAllow, own, event("", with), false, false},
		"tier stays":              {3, v1alpha1.PolicyAllow, own, event(with, with), true, false},
		"tier changes":            {3, v1alpha1.PolicyAllow, own, event(with, without), false, false},
		"tier of a new object":    {3, v1alpha1.PolicyAllow, own, event("", with), false, false},
		"the object is gone":      {0, v1alpha1.PolicyAllow, own, event(without, ""), true, false},
		"a subresource":           {0, v1alpha1.PolicyAllow, Place{Group: "apps", Resource: "deployments", Sub: "scale"}, event("", with), false, false},
		"denied":                  {0, v1alpha1.PolicyDeny, own, event("", with), false, true},
		"not denied":              {0, v1alpha1.PolicyDeny, own, event(with, without), false, false},
		"denied, and gone":        {0, v1alpha1.PolicyDeny, own, event(with, ""), false, false},
		"denied at a subresource": {0, v1alpha1.PolicyDeny, Place{Group: "apps", Resource: "deployments", Sub: "status"}, event("", with), false, false},
	} {
		u := &User{grants: map[Place]map[string]bool{}, gates: []*gate{{[]string{"update"}, c.effect, objectConditions[c.on]}}}
		got, denied, err := u.in(own, &Request{Endpoint: &Endpoint{Place: c.at}}, c.event)
		if err != nil || got.Holds(c.at, "update") != c.holds || (denied != nil) != c.denied {
			t.Errorf("%s: %t, %v, %v", name, got.Holds(c.at, "update"), denied, err)
		}
	}
}
