package load

import (
	"fmt"
	"strings"
	"testing"
)

// TestC2_AConditionIsAtADeclaredScalar: anything else could be read in two ways, so that it is a fault.
func TestC2_AConditionIsAtADeclaredScalar(t *testing.T) {
	const cure = "put it at the scalar, or write a ConditionalPolicy of effect Deny"
	for name, c := range map[string]struct {
		field, path string
		holds       bool
	}{
		"a string":                   {"{type: string}", ".spec.x", true},
		"a nullable string":          {"{type: string, nullable: true}", ".spec.x", true},
		"an integer":                 {"{type: integer}", ".spec.x", true},
		"a number":                   {"{type: number}", ".spec.x", true},
		"a boolean":                  {"{type: boolean}", ".spec.x", true},
		"an integer or a string":     {"{x-kubernetes-int-or-string: true}", ".spec.x", true},
		"an item of a set":           {"{type: array, x-kubernetes-list-type: set, items: {type: string}}", ".spec.x[*]", true},
		"an item of an atomic list":  {"{type: array, items: {type: string}}", ".spec.x[*]", true},
		"a value of a map":           {"{type: object, additionalProperties: {type: string}}", ".spec.x[*]", true},
		"a key of a map":             {"{type: object, additionalProperties: {type: string}}", `.spec.x["a"]`, true},
		"a label":                    {"{type: string}", `.metadata.labels["a"]`, true},
		"an object":                  {"{type: object, properties: {a: {type: string}}}", ".spec.x", false},
		"a map":                      {"{type: object, additionalProperties: {type: string}}", ".spec.x", false},
		"a list":                     {"{type: array, items: {type: string}}", ".spec.x", false},
		"an item that is an object":  {"{type: array, items: {type: object, properties: {a: {type: string}}}}", ".spec.x[*]", false},
		"an object with any fields":  {"{type: object, " + keepUnknown + "}", ".spec.x", false},
		"a field that is not known":  {"{type: object, " + keepUnknown + "}", ".spec.x.a", false},
		"a value that is not known":  {"{" + keepUnknown + "}", ".spec.x", false},
		"the labels":                 {"{type: string}", ".metadata.labels", false},
		"the metadata":               {"{type: string}", ".metadata", false},
		"an object, in two versions": {"{type: object, properties: {a: {type: string}}}", ".spec.x", false},
	} {
		t.Run(name, func(t *testing.T) {
			version := "{name: VERSION, served: true, storage: STORED, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {x: " + c.field + "}}}}}}"
			versions, permissions := strings.NewReplacer("VERSION", "v1", "STORED", "true").Replace(version), `"v1":[ENTRY]`
			if strings.Contains(name, "two versions") {
				versions, permissions = versions+", "+strings.NewReplacer("VERSION", "v2", "STORED", "false").Replace(version), permissions+`,"v2":[ENTRY]`
			}
			entry := fmt.Sprintf(`{"path":%q,"verb":"example.com/x","excludedWhen":"self == null"}`, c.path)
			definition := fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com, annotations: {fieldperm.dev/permission-verbs: '{%s}'}}\n"+
				"spec: {group: example.com, scope: Namespaced, names: {kind: X, plural: xs}, versions: [%s]}\n", strings.ReplaceAll(permissions, "ENTRY", entry), versions)
			_, errs := compileFragments(t, definition)
			if text := fmt.Sprint(errs); (len(errs) == 0) != c.holds || !c.holds && (!strings.Contains(text, cure) || !strings.Contains(text, fmt.Sprintf("%q", c.path))) {
				t.Errorf("got %s", text)
			}
		})
	}
}

// TestC3_AConditionOfAnotherVersionAlwaysHoldsWhereNoScalarIs: the document names the version in which the field is a scalar.
func TestC3_AConditionOfAnotherVersionAlwaysHoldsWhereNoScalarIs(t *testing.T) {
	definition := strings.Replace(vaults("v1", "v2"), "name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {secret: {type: string}",
		"name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {secret: {type: object, properties: {a: {type: string}}}", 1)
	document := ofVersion("v1", permissionSchema("x", "example.com", "Vault", `{path: .spec.secret, verb: example.com/y, excludedWhen: "self == 'a'"}`))
	kind := gvk("example.com", "v2", "Vault")
	for want, documents := range map[string][]string{"y": {document}, "v y": {document, ofVersion("v2", permissionSchema("z", "example.com", "Vault", "{path: .spec.secret, verb: example.com/v}"))}} {
		_, n := placeIn(t, compileWorkloads(t, append(documents, definition)...), kind, ".spec.secret")
		var got []string
		for _, p := range n.Permissions() {
			got = append(got, strings.TrimPrefix(p.Describe(), "granular:example.com/"))
			if p.MayBar() && !p.Excluded() {
				t.Errorf("%q has a condition", p.Describe())
			}
		}
		if got := strings.Join(got, " "); got != want || !n.Permissions()[len(n.Permissions())-1].Excluded() {
			t.Errorf("the field has %q, want %q", got, want)
		}
	}
}
