package load

import (
	"fmt"
	"strings"
	"testing"
)

// filling returns entries below fields of unknown fields, with a parameter for each of 11 steps. They stand for 4,095 places for each field: those of a
// step double with the step, and a kind has room for 12 fields.
func filling(fields ...string) string {
	var entries []string
	for _, field := range fields {
		for i := range 11 {
			entries = append(entries, fmt.Sprintf("{path: '.spec.%s%s', parameterSource: %s%d}", field, strings.Repeat("[*]", i), field, i))
		}
		entries = append(entries, "{path: '.spec."+field+strings.Repeat("[*]", 11)+"', verb: example.com/y}")
	}
	return strings.Join(entries, ", ")
}

// TestC2_TheDocumentWithTheMostPlacesHasTheFault of a kind without room, and not the one of the place that has no room left: that may be one of the
// catalogue, which is about all kinds, or of a document that has been in force for long.
func TestC2_TheDocumentWithTheMostPlacesHasTheFault(t *testing.T) {
	most := filling(strings.Split("abcdefghijkl", "")...)
	document := func(name, entries string) string { return permissionSchema(name, "example.com", "Vault", entries) }
	for name, c := range map[string]struct {
		first, second, faulty string
	}{
		"the first":      {most, filling("z"), "d1.yaml:"},
		"the second":     {filling("aa"), most, "d2.yaml:"},
		"both have room": {most, "{path: .spec.z.y, verb: example.com/y}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := compileFragments(t, unknownVaults(), document("a", c.first), document("b", c.second))
			if (len(errs) > 0) != (c.faulty != "") || len(errs) > 1 {
				t.Fatalf("faults %.500q", errs)
			}
			if len(errs) == 1 && (!strings.HasPrefix(errs[0].Error(), c.faulty) || !strings.Contains(errs[0].Error(), "more than 50000 places")) {
				t.Errorf("%v, want a fault of %s", errs[0], c.faulty)
			}
		})
	}
}

// TestC2_TooManyBarriersAtOnePlaceAreAFault of the document with most of them: each is a demand of every change there.
func TestC2_TooManyBarriersAtOnePlaceAreAFault(t *testing.T) {
	var versions []string
	for i := range 30 {
		versions = append(versions, fmt.Sprintf("v%d", i+1))
	}
	documents := []string{vaults(versions...)}
	for i, version := range versions {
		documents = append(documents, ofVersion(version, permissionSchema(fmt.Sprintf("a%02d", i), "example.com", "Vault", fmt.Sprintf("{path: .spec.items, verb: example.com/v%d, excluded: true}", i))))
	}
	_, errs := compileFragments(t, documents...)
	if len(errs) == 0 || !strings.Contains(errs[0].Error(), "more than 16 barriers with different verbs: agree on one verb") {
		t.Errorf("faults %v", errs)
	}
	if _, errs := compileFragments(t, documents[:17]...); len(errs) > 0 {
		t.Errorf("16 barriers: %v", errs)
	}
}
