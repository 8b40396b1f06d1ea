package fieldperm

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/verbs"
)

// decidedBy answers every verb in the name of one authorizer.
type decidedBy map[string]Answer

func (d decidedBy) Authorize(_ context.Context, verb string, _ bool) (Answer, error) {
	return d[verb], nil
}

func TestP7_ChecksNameWhoDecided(t *testing.T) {
	d, err := Decide(context.Background(), decidedBy{
		"update":             {By: "protector"},
		verbs.Marker:         {Allowed: true, By: "rbac"},
		verbs.Prefix + "one": {Allowed: true, By: "rbac"},
	}, Review{Generic: update, Requirements: []Requirement{need("x", "*", "one")}}, Limits{})
	want := []Check{{"update", false, "protector"}, {"patch", false, ""}, {"granular", true, "rbac"}, {"granular:*", false, ""}, {"granular:one", true, "rbac"}}
	if err != nil || !slices.Equal(d.Checks, want) {
		t.Errorf("checks %v, error %v; want %v", d.Checks, err, want)
	}
}

// What does not count was nobody's decision: an Allow of our own authorizer is none.
func TestP7_A4_OwnAllowIsNobodysDecision(t *testing.T) {
	d, err := Decide(context.Background(), decidedBy{
		"update": {Allowed: true, By: "in-cluster-authorizer", Reason: verbs.Prefix + " the user holds it"},
	}, Review{Generic: update}, Limits{})
	if err != nil || d.Allowed || slices.ContainsFunc(d.Checks, func(c Check) bool { return c.By != "" || c.Allowed }) {
		t.Errorf("decision %+v, error %v", d, err)
	}
	if !strings.HasPrefix(verbs.Prefix, verbs.Marker) {
		t.Error("the reason's prefix is no longer the marker's")
	}
}
