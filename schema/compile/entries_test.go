package compile

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// Nodes with equal content are one node, so all that makes a difference to a barrier or a verb counts, and no text runs into the next.
func TestC2_EntriesThatDifferHaveDifferentContent(t *testing.T) {
	entry := func(p v1alpha1.FieldPermission) *guard {
		return newGuard("", RankAdministrator, &Entry{FieldPermission: p}, nil)
	}
	change := func(change func(*guard)) *guard {
		out := entry(v1alpha1.FieldPermission{Verb: "a"})
		change(out)
		out.describe()
		return out
	}
	seen := map[string]string{}
	for name, g := range map[string]*guard{
		"verb":             entry(v1alpha1.FieldPermission{Verb: "a"}),
		"longer verb":      entry(v1alpha1.FieldPermission{Verb: "ab"}),
		"parameter":        entry(v1alpha1.FieldPermission{Verb: "a", ParameterizedBy: "b"}),
		"treatment":        entry(v1alpha1.FieldPermission{Verb: "a", ParameterTreatment: "b"}),
		"expression":       entry(v1alpha1.FieldPermission{Verb: "a", ParameterExpression: "b"}),
		"excluded":         entry(v1alpha1.FieldPermission{Verb: "a", Excluded: true}),
		"condition":        entry(v1alpha1.FieldPermission{Verb: "a", ExcludedWhen: "b"}),
		"two conditions":   change(func(g *guard) { g.when = []string{"b", "c"} }),
		"other conditions": change(func(g *guard) { g.when = []string{"bc"} }),
		"bared":            change(func(g *guard) { g.lacksParameter = true }),
		"power":            change(func(g *guard) { g.entry.Powers = []schema.Power{schema.RunsCode} }),
		"origin":           change(func(g *guard) { g.from = []schema.Origin{{Form: schema.FormAnnotation, Source: "b"}} }),
	} {
		if other, is := seen[g.says]; is {
			t.Errorf("%s and %s say the same", name, other)
		}
		if seen[g.says] = name; !strings.Contains(g.content, g.says) {
			t.Errorf("%s: the content has not all of what the entry says", name)
		}
		if (g.effect != g.says) != (name == "origin") {
			t.Errorf("%s: the effect is with origins, or is not what the entry says", name)
		}
	}
}

func TestC2_OverlaysThatDifferHaveDifferentIdentities(t *testing.T) {
	of := func(verb string) *guard {
		return newGuard("", RankAdministrator, &Entry{FieldPermission: v1alpha1.FieldPermission{Verb: verb, ParameterSource: verb}}, nil)
	}
	a, b := of("a"), of("b")
	seen := map[string]string{}
	for name, o := range map[string]*overlay{
		"nothing":          {},
		"claim":            {level: level{claim: a}},
		"other claim":      {level: level{claim: b}},
		"general":          {general: []level{{claim: a}}},
		"general and own":  {level: level{claim: a}, general: []level{{claim: a}}},
		"two general":      {general: []level{{claim: a}, {claim: a}}},
		"written":          {written: a},
		"emitter":          {level: level{emitters: []*guard{a}}},
		"role":             {role: "a"},
		"catalogued":       {catalogued: true},
		"barrier":          {level: level{barriers: []*guard{a}}},
		"general barrier":  {general: []level{{barriers: []*guard{a}}}},
		"items":            {any: &overlay{level: level{claim: a}}},
		"field":            {fields: map[string]*overlay{"a": {level: level{claim: a}}}},
		"field without it": {fields: map[string]*overlay{"a": {}}},
		"other field":      {fields: map[string]*overlay{"b": {level: level{claim: a}}}},
	} {
		id := o.identity()
		if other, is := seen[id]; is {
			t.Errorf("%s and %s have the same identity", name, other)
		}
		seen[id] = name
	}
}
