package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// fillingWidgets returns a PermissionSchema that stands for 4,095 places of each field, of 50,000 that a kind has room for.
func fillingWidgets(fields ...string) string {
	var entries []string
	for _, field := range fields {
		for i := range 12 {
			entries = append(entries, fmt.Sprintf("{path: '.spec.%s%s', parameterSource: %s%d}", field, strings.Repeat("[*]", i), field, i))
		}
	}
	return permissions("example.com", "Widget", strings.Join(entries, "\n  - "))
}

// TestSchemas_ADocumentWithWhichAKindFailsIsRefused, whichever document the compiler finds the fault in. A document that has nothing to do with the
// kind is accepted, also while the kind fails.
func TestSchemas_ADocumentWithWhichAKindFailsIsRefused(t *testing.T) {
	keeping := strings.Replace(definition("{}", ""), "spec: {type: object, ", "spec: {type: object, x-kubernetes-preserve-unknown-fields: true, ", 1)
	full, more := fillingWidgets(strings.Split("abcdefghijkl", "")...), fillingWidgets("z")
	for name, c := range map[string]struct {
		current []string
		added   string
		want    string
	}{
		"the one that fills":   {[]string{keeping, more}, full, "stand for more than 50000 places"},
		"one more":             {[]string{keeping, full}, more, `writes of "example.com/v1, Kind=Widget" would be refused with this document: doc1:/spec/permissions/0`},
		"alone":                {[]string{keeping}, full, ""},
		"one that has room":    {[]string{keeping, full}, permissions("example.com", "Widget", "{path: .spec.z, verb: example.com/z}"), ""},
		"another kind":         {[]string{keeping, full}, permissions("", "Pod", "{path: .spec.hostname, verb: example.com/pods, excluded: true}"), ""},
		"while the kind fails": {[]string{keeping, full, more}, permissions("", "Pod", "{path: .spec.hostname, verb: example.com/pods, excluded: true}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			current := schematest.Documents(t, c.current...)
			r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
			req := submit(t, c.added, "")
			faults, err := r.Review(t.Context(), req)
			response := SchemaResponse(faults, err, req)
			if response.Allowed != (c.want == "") || c.want != "" && !strings.Contains(response.Result.Message, c.want) {
				t.Errorf("got %+v, %v", response, err)
			}
		})
	}
}
