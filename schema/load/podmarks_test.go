package load

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

// onLabelsOfPods is a barrier that holds in templates because their metadata is marked.
var onLabelsOfPods = permissionSchema("zz", "", "Pod", "{path: .metadata.labels.tier, verb: example.com/tier, excluded: true}")

// TestC8_NoDocumentChangesThePartOfPodsThatAFieldBecomes: the barriers of the other part would no longer hold.
func TestC8_NoDocumentChangesThePartOfPodsThatAFieldBecomes(t *testing.T) {
	const (
		asSpec     = "{path: .spec.template.metadata, include: podSpec}"
		asTemplate = "{path: .spec.template, include: podTemplate}"
	)
	plain, marked := runner("{type: object, "+keepUnknown+"}"), runner("{type: object, "+withKey+", "+keepUnknown+"}")
	_, version, _ := strings.Cut(plain, "versions:\n")
	twoVersions := plain + strings.NewReplacer("name: v1", "name: v2", "storage: true", "storage: false").Replace(version)
	annotated := func(definition string) string {
		return runnerWith(definition, `{"path":".spec.template.metadata","include":"podSpec"}`)
	}
	runner := func(name, entries string) string { return permissionSchema(name, "example.com", "Runner", entries) }
	for name, c := range map[string]struct {
		documents []string
		// faulty is the entry with the fault, "" for none.
		faulty string
	}{
		"a built-in kind":                      {[]string{permissionSchema("a", "apps", "ControllerRevision", "{path: .data.spec.template.metadata, include: podSpec}")}, "d0.yaml:/spec/permissions/0"},
		"the definition":                       {[]string{marked, runner("a", asSpec)}, "d1.yaml:/spec/permissions/0"},
		"an earlier document":                  {[]string{plain, runner("a", asTemplate), runner("b", asSpec)}, "d2.yaml:/spec/permissions/0"},
		"a later document":                     {[]string{plain, runner("a", asSpec), runner("b", asTemplate)}, "d2.yaml:/spec/permissions/0"},
		"the same document":                    {[]string{plain, runner("a", asTemplate+", "+asSpec)}, "d1.yaml:/spec/permissions/1"},
		"the annotation of a definition":       {[]string{annotated(marked)}, "d0.yaml:/metadata/annotations/fieldperm.dev~1permission-verbs/v1/0"},
		"the annotation, and a document":       {[]string{annotated(plain), runner("a", asTemplate)}, "d1.yaml:/spec/permissions/0"},
		"all keys, and one":                    {[]string{plain, runner("a", "{path: '.spec.template[*]', include: podTemplate}"), runner("b", "{path: .spec.template.a.metadata, include: podSpec}")}, "d2.yaml:/spec/permissions/0"},
		"one key, and all":                     {[]string{plain, runner("a", "{path: .spec.template.a.metadata, include: podSpec}"), runner("b", "{path: '.spec.template[*]', include: podTemplate}")}, "d2.yaml:/spec/permissions/0"},
		"a prefix of keys, and one":            {[]string{plain, runner("a", `{path: '.spec.template["a/"]', include: podTemplate}`), runner("b", `{path: '.spec.template["a/b"].metadata', include: podSpec}`)}, "d2.yaml:/spec/permissions/0"},
		"another version":                      {[]string{twoVersions, strings.Replace(runner("a", asTemplate), "permissions:", "versions: [v1], permissions:", 1), strings.Replace(runner("b", asSpec), "permissions:", "versions: [v2], permissions:", 1)}, "d2.yaml:/spec/permissions/0"},
		"the same part twice":                  {[]string{marked, runner("a", asTemplate), runner("b", "{path: .spec.template.spec, include: podSpec}")}, ""},
		"a fragment without a part of Pods":    {[]string{marked, runner("a", "{path: .spec.template.metadata, include: templateMetadata}")}, ""},
		"a part in a part":                     {[]string{marked, runner("a", "{path: .spec.template, include: podSpec}")}, ""},
		"templates beside each other, and one": {[]string{plain, runner("a", asTemplate+", {path: .spec.template.next, include: podTemplate}")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFragments(t, append(c.documents, onLabelsOfPods)...)
			if c.faulty == "" && len(errs) > 0 || c.faulty != "" && len(errs) == 0 {
				t.Errorf("faults %q, want one at %q", errs, c.faulty)
			}
			for _, err := range errs {
				if !strings.HasPrefix(err.Error(), c.faulty+": ") || !strings.Contains(err.Error(), "of Pods, and ") {
					t.Errorf("%v, want a fault at %s", err, c.faulty)
				}
			}
			if c.faulty == "" && !strings.Contains(verbsAt(t, s, gvk("example.com", "v1", "Runner"), ".spec.template.metadata.labels.tier"), "EXAMPLE.COM/TIER") {
				t.Error("the barrier on the label of Pods does not hold")
			}
		})
	}
}

// TestC8_NoDocumentChangesThePartOfPodsThatATypeBecomes: an API server publishes what a field of any kind with the type is.
func TestC8_NoDocumentChangesThePartOfPodsThatATypeBecomes(t *testing.T) {
	const doc = `{"openapi":"3.0.0","components":{"schemas":{
"a.Run":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Runner"}],"properties":{
 "metadata":{"$ref":"#/components/schemas/a.ObjectMeta"},"spec":{"type":"object","properties":{"template":{"$ref":"#/components/schemas/a.Template"}}}}},
"a.ObjectMeta":{"type":"object","properties":{"name":{"type":"string"}}},
"a.Template":{"type":"object","x-kubernetes-permission-include":"podTemplate","properties":{"metadata":{"type":"object","additionalProperties":{"type":"object"}}}}}}}`
	topology, err := OpenAPIV3("api.json", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	added, errs := Decode("a.yaml", []byte(permissionSchema("a", "example.com", "Runner", "{path: .spec.template.metadata, include: podSpec}")))
	noErrors(t, errs)
	_, errs = schema.Compile(added.Append(schema.Documents{Topologies: []schema.Topology{topology}}))
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "a.yaml:/spec/permissions/0: ") || !strings.Contains(errs[0].Error(), "makes it their metadata") {
		t.Errorf("faults %q", errs)
	}
}
