package schema_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// C8: the search for the verbs of templates leaves out the fields of Pods that do not have the verb of the set, and finds the same as a search
// of all fields, for each verb of Pods, with and without a parameter.
func TestC8_TheVerbsOfTemplatesAreThoseOfAllFields(t *testing.T) {
	s, errs := compileFew(t)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	resources := map[string][]v1alpha1.ResourceRule{
		"pods":       {{APIGroups: []string{""}, Resources: []string{"pods"}}},
		"everything": {{APIGroups: []string{"*"}, Resources: []string{"*"}}},
	}
	found := 0
	for _, base := range s.PodVerbs() {
		of := []string{base.String()}
		if v, ok := base.WithParameter("example.com"); ok {
			of = append(of, v.String())
		}
		for _, text := range of {
			for name, rules := range resources {
				got := map[string][]string{}
				for _, b := range s.OnTemplates(&v1alpha1.UncoveredPermissionSetSpec{UncoveredPermissions: []string{text}, Resources: rules}) {
					got[b.String()] = b.Verbs
					found++
				}
				if want := s.DirectlyOnTemplates(all(t, text), rules); !maps.EqualFunc(got, want, slices.Equal) {
					t.Errorf("%s on %s: %v, want %v", text, name, got, want)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d barriers were compared", found)
	}
}
