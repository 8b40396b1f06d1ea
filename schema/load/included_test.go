package load

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema/compile"
)

// runnerWith puts the annotation of permissions on the definition of runners.
func runnerWith(definition, entries string) string {
	return strings.Replace(definition, "metadata: {name: runners.example.com}",
		`metadata: {name: runners.example.com, annotations: {fieldperm.dev/permission-verbs: '{"v1":[`+entries+`]}'}}`, 1)
}

// TestG5_AnIncludeReplacesNoEntry, wherever the two stand, whatever their ranks, and above all no barrier. The entries of the fragment
// around it have their parameters all the same.
func TestG5_AnIncludeReplacesNoEntry(t *testing.T) {
	const included = "{path: .spec.template, include: podTemplate}"
	plain := runner(partial("", listed))
	inline := strings.NewReplacer(
		"nodeName: {type: string}", "nodeName: {type: string, x-kubernetes-permission-verb: example.com/node, x-kubernetes-permission-excluded: true}",
		"labels: {type: object,", "labels: {type: object, x-kubernetes-permission-verb: example.com/labels,",
		"properties: {name: {type: string}, image", "properties: {name: {type: string, x-kubernetes-permission-verb: example.com/name}, image",
	).Replace(plain)
	entries := "{path: .spec.template.spec.nodeName, verb: example.com/node, excluded: true}, {path: .spec.template.metadata.labels, verb: example.com/labels}, " +
		"{path: '.spec.template.spec.containers[*].name', verb: example.com/name}"
	written := permissionSchema("b", "example.com", "Runner", entries)
	for name, documents := range map[string][]string{
		"in the annotation":                   {runnerWith(inline, `{"path":".spec.template","include":"podTemplate"}`)},
		"in a PermissionSchema":               {inline, permissionSchema("a", "example.com", "Runner", included)},
		"in an earlier PermissionSchema":      {plain, permissionSchema("a", "example.com", "Runner", included), written},
		"in a later PermissionSchema":         {plain, written, permissionSchema("c", "example.com", "Runner", included)},
		"in the definition, and one replaces": {runner(partial(withKey+", ", listed)), written},
		"in the same PermissionSchema":        {plain, permissionSchema("b", "example.com", "Runner", entries+", "+included)},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFragments(t, documents...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for path, want := range map[string]string{
				".spec.template":                          "template",
				".spec.template.spec.nodeName":            "EXAMPLE.COM/NODE",
				".spec.template.metadata.labels":          "example.com/labels",
				".spec.template.metadata.labels.a":        "templateLabel(prefix of labelKey)",
				".spec.template.spec.containers[*].name":  "example.com/name",
				".spec.template.spec.containers[*].image": "image(containerName)",
			} {
				if got := verbsAt(t, s, gvk("example.com", "v1", "Runner"), path); got != want {
					t.Errorf("%s has %q, want %q", path, got, want)
				}
			}
		})
	}
}

// TestG5_AnIncludeLeavesABarrierOnAPrefix: a key of the fragment does not take it out of the author's barrier on its prefix.
func TestG5_AnIncludeLeavesABarrierOnAPrefix(t *testing.T) {
	template := strings.Replace(partial("", listed), labelled, strings.Replace(labelled, "labels:", "annotations:", 1), 1)
	s, errs := compileFragments(t,
		runnerWith(runner(template), `{"path":".spec.template.metadata.annotations[\"kubectl.kubernetes.io/\"]","verb":"example.com/tool","excluded":true}`),
		permissionSchema("a", "example.com", "Runner", "{path: .spec.template, include: podTemplate}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	const want = "templateAnnotation(prefix of annotationKey) example.com/tool defaultContainer EXAMPLE.COM/TOOL"
	if got := verbsAt(t, s, gvk("example.com", "v1", "Runner"), `.spec.template.metadata.annotations["kubectl.kubernetes.io/default-container"]`); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestG5_AnIncludeOnAFieldLeavesTheBarriersOfItsType, as an API server publishes them: the include is on the field, the barrier in the type.
func TestG5_AnIncludeOnAFieldLeavesTheBarriersOfItsType(t *testing.T) {
	const doc = `{"openapi":"3.0.0","components":{"schemas":{
"a.Run":{"type":"object","x-kubernetes-group-version-kind":[{"group":"a.example.com","version":"v1","kind":"Run"}],"properties":{
 "metadata":{"$ref":"#/components/schemas/a.ObjectMeta"},
 "spec":{"type":"object","properties":{"template":{"allOf":[{"$ref":"#/components/schemas/a.Template"}],"x-kubernetes-permission-include":"podTemplate"}}}}},
"a.ObjectMeta":{"type":"object","properties":{"name":{"type":"string"}}},
"a.Template":{"type":"object","properties":{"spec":{"type":"object","properties":{"nodeName":{"type":"string","x-kubernetes-permission-verb":"example.com/node","x-kubernetes-permission-excluded":true}}}}}}}}`
	topology, err := OpenAPIV3("api.json", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	builtIn, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	other, errs := Decode("p.yaml", []byte(permissionSchema("p", "a.example.com", "Run", "{path: .spec.template.spec.nodeName, verb: example.com/other}")))
	noErrors(t, errs)
	for want, documents := range map[string]compile.Documents{"EXAMPLE.COM/NODE": {}, "example.com/other EXAMPLE.COM/NODE": other} {
		s := compileDocuments(t, compile.Documents{Topologies: []compile.Topology{builtIn, topology}, Permissions: catalogue}.Append(documents))
		if got := verbsAt(t, s, gvk("a.example.com", "v1", "Run"), ".spec.template.spec.nodeName"); got != want {
			t.Errorf("the node has %q, want %q", got, want)
		}
	}
}
