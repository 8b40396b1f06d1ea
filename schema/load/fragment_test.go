package load

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// fragmentSchema returns a PermissionSchema about a fragment, with entries in the flow style of YAML.
func fragmentSchema(fragment, entries string) string {
	return strings.Replace(permissionSchema("f", "", "X", entries), `group: "", kind: X`, "fragment: "+fragment, 1)
}

// TestC2_ABarrierOfAFragmentHoldsInEveryKindThatContainsIt: built-in kinds, and a definition that includes it or a fragment that contains it.
func TestC2_ABarrierOfAFragmentHoldsInEveryKindThatContainsIt(t *testing.T) {
	template := runner(partial(withKey+", ", listed))
	for name, c := range map[string]struct {
		fragment, path string
		want           map[runtimeschema.GroupVersionKind]string
	}{
		"podSpec": {"podSpec", ".nodeName", map[runtimeschema.GroupVersionKind]string{
			gvk("", "v1", "Pod"): ".spec", gvk("apps", "v1", "Deployment"): ".spec.template.spec", gvk("batch", "v1", "CronJob"): ".spec.jobTemplate.spec.template.spec",
			gvk("apps", "v1", "ControllerRevision"): ".data.spec.template.spec", gvk("", "v1", "PodTemplate"): ".template.spec", gvk("example.com", "v1", "Runner"): ".spec.template.spec",
		}},
		"podTemplate": {"podTemplate", ".metadata.labels.tier", map[runtimeschema.GroupVersionKind]string{
			gvk("apps", "v1", "Deployment"): ".spec.template", gvk("batch", "v1", "Job"): ".spec.template", gvk("example.com", "v1", "Runner"): ".spec.template",
		}},
		"metadata": {"metadata", ".labels.tier", map[runtimeschema.GroupVersionKind]string{
			gvk("", "v1", "Pod"): ".metadata", gvk("", "v1", "ConfigMap"): ".metadata", gvk("example.com", "v1", "Runner"): ".metadata",
		}},
		"conditions": {"conditions", "[*].reason", map[runtimeschema.GroupVersionKind]string{
			gvk("", "v1", "Pod"): ".status.conditions", gvk("apps", "v1", "Deployment"): ".status.conditions",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFragments(t, template, fragmentSchema(c.fragment, `{path: '`+c.path+`', verb: example.com/y, excluded: true}`))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			kinds := (&compile.PermissionDocument{Fragment: c.fragment}).KindsIn(s)
			for kind, at := range c.want {
				if got := verbsAt(t, s, kind, at+c.path); !strings.HasSuffix(got, "EXAMPLE.COM/Y") {
					t.Errorf("%s has %q", kind.Kind, got)
				}
				if !slices.Contains(kinds, kind.GroupKind()) {
					t.Errorf("%s is none of the kinds of the document", kind.Kind)
				}
			}
			if got := slices.Contains(kinds, runtimeschema.GroupKind{Kind: "ConfigMap"}); got != (c.fragment == "metadata" || c.fragment == "conditions") {
				t.Errorf("ConfigMap is one of the kinds: %t", got)
			}
		})
	}
	// Two documents about one field are both needed, whatever they are about.
	s, errs := compileFragments(t, template, fragmentSchema("podSpec", `{path: .nodeName, verb: example.com/y, excluded: true}`), permissionSchema("a", "", "Pod", `{path: .spec.nodeName, verb: example.com/z, excluded: true}`))
	if got := verbsAt(t, s, gvk("", "v1", "Pod"), ".spec.nodeName"); len(errs) > 0 || !strings.Contains(got, "EXAMPLE.COM/") {
		t.Errorf("beside a document about the kind: %q, %v", got, errs)
	}
}

// TestG5_FaultsOfFragments: each has its place and the cure.
func TestG5_FaultsOfFragments(t *testing.T) {
	entry := `{path: .hostNetwork, verb: example.com/y, excluded: true}`
	for name, c := range map[string]struct{ document, want string }{
		"no fragment":      {fragmentSchema("podSpecs", entry), `/spec/fragment: fragment "podSpecs" does not exist: use one of`},
		"a kind too":       {strings.Replace(fragmentSchema("podSpec", entry), "fragment:", "kind: Pod, fragment:", 1), "leave out group, kind and versions"},
		"versions":         {strings.Replace(fragmentSchema("podSpec", entry), "fragment:", "versions: [v1], fragment:", 1), "leave out group, kind and versions"},
		"an include":       {fragmentSchema("podSpec", `{path: .x, include: podTemplate}`), "/spec/permissions/0/include: a fragment is included in a kind"},
		"a path of a kind": {fragmentSchema("podSpec", `{path: .spec.hostNetwork, verb: example.com/y, excluded: true}`), `/spec/permissions/0: path ".spec.hostNetwork" does not exist in fragment "podSpec"`},
		"nothing":          {strings.Replace(fragmentSchema("podSpec", entry), "fragment: podSpec", "versions: []", 1), "name one kind, or a fragment"},
	} {
		_, errs := compileFragments(t, c.document)
		if len(errs) == 0 || !strings.Contains(errs[0].Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, errs, c.want)
		}
	}
}

// TestC2_AConditionOfAFragmentHoldsForAllValuesWhereNoScalarIsDeclared: nothing is known of the data of a ControllerRevision.
func TestC2_AConditionOfAFragmentHoldsForAllValuesWhereNoScalarIsDeclared(t *testing.T) {
	s, errs := compileFragments(t, runner("{type: object, "+withKey+", "+keepUnknown+"}"), fragmentSchema("podSpec", `{path: .hostNetwork, verb: example.com/y, excludedWhen: self == true}`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for kind, at := range map[runtimeschema.GroupVersionKind]string{
		gvk("apps", "v1", "Deployment"): `{"spec":{"template":{"spec":{%s}}}}`, gvk("apps", "v1", "ControllerRevision"): `{"data":{"spec":{"template":{"spec":{%s}}}}}`, gvk("example.com", "v1", "Runner"): `{"spec":{"template":{"spec":{%s}}}}`,
	} {
		for value, want := range map[string]bool{`"hostNetwork":true`: true, `"hostNetwork":false`: kind.Kind != "Deployment", `"hostPID":true`: false} {
			if got := isBarred(t, s, kind, strings.Replace(at, "%s", "", 1), strings.Replace(at, "%s", value, 1)); got != want {
				t.Errorf("%s with %s: barred %t, want %t", kind.Kind, value, got, want)
			}
		}
	}
	if _, errs := compileFragments(t, fragmentSchema("podSpec", `{path: .securityContext, verb: example.com/y, excludedWhen: self == null}`)); len(errs) == 0 || !strings.Contains(errs[0].Error(), "put it at the scalar") {
		t.Errorf("at an object: %v", errs)
	}
}

// TestC2_ABarrierOfAFragmentHoldsWithoutItsParameter where a list has no keys, so that the parameter is not known.
func TestC2_ABarrierOfAFragmentHoldsWithoutItsParameter(t *testing.T) {
	for name, template := range map[string]string{
		"a list without keys": "{type: object, " + withKey + ", properties: {spec: {type: object, properties: {containers: {type: array, items: {type: object, properties: {name: {type: string}, image: {type: string}}}}}}}}",
		"unknown fields":      "{type: object, " + withKey + ", " + keepUnknown + "}",
	} {
		got := passingOf(t, runnerKind, "runners", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"a"}]}}}}`, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"b"}]}}}}`,
			runner(template), fragmentSchema("podSpec", `{path: '.containers[*].image', verb: image, parameterizedBy: containerName, excluded: true}`))
		if !strings.Contains(got, "image]") {
			t.Errorf("%s: needs %q", name, got)
		}
	}
}

// TestC2_IncludesOfOneFragmentMayOverlap: what a document says of the fragment stands there once.
func TestC2_IncludesOfOneFragmentMayOverlap(t *testing.T) {
	definition := strings.Replace(runner(partial("", listed)), "metadata: {name: runners.example.com}",
		`metadata: {name: runners.example.com, annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.template","include":"podTemplate"},{"path":".spec.template.spec","include":"podSpec"}]}'}}`, 1)
	s, errs := compileFragments(t, definition, fragmentSchema("podSpec", `{path: .nodeName, verb: example.com/y, excluded: true}`))
	if got := verbsAt(t, s, gvk("example.com", "v1", "Runner"), ".spec.template.spec.nodeName"); len(errs) > 0 || got != "EXAMPLE.COM/Y" {
		t.Errorf("%q, %v", got, errs)
	}
}

// TestG5_FragmentsInTypesOfAnAggregatedAPI: of the kinds whose types include a fragment, each has the barriers of its documents, and fails with their faults.
func TestG5_FragmentsInTypesOfAnAggregatedAPI(t *testing.T) {
	const spec = `"spec":{"type":"object","properties":{"template":{"allOf":[{"$ref":"#/components/schemas/a.Template"}],"x-kubernetes-permission-include":"podTemplate"}}}`
	kind := func(name string) string {
		return `"a.` + name + `":{"type":"object","x-kubernetes-group-version-kind":[{"group":"a.example.com","version":"v1","kind":"` + name + `"}],"properties":{"metadata":{"$ref":"#/components/schemas/a.ObjectMeta"},` + spec + `}},`
	}
	api := `{"openapi":"3.0.0","components":{"schemas":{` + kind("Run") + kind("Zun") + `"a.ObjectMeta":{"type":"object","properties":{"name":{"type":"string"}}},` +
		`"a.Template":{"type":"object","properties":{"spec":{"type":"object","properties":{"nodeName":{"type":"string"},"hostNetwork":{"type":"boolean"}}}}}}}}`
	compile := func(documents ...string) *schema.Schema {
		docs := documentsOf(t, documents...)
		topology, err := OpenAPIV3("api.json", []byte(api))
		if err != nil {
			t.Fatal(err)
		}
		docs.Topologies[0] = workloadKinds(t)
		docs.Topologies = append(docs.Topologies, topology)
		out, _ := compile.Compile(docs)
		return out
	}
	run, zun := gvk("a.example.com", "v1", "Run"), gvk("a.example.com", "v1", "Zun")
	bars := fragmentSchema("podSpec", `{path: .nodeName, verb: example.com/y, excluded: true}`)
	other := permissionSchema("w", "a.example.com", "Run", `{path: .spec.template.spec.nodeName, verb: example.com/w}`)
	const old, changed = `{"spec":{"template":{"spec":{"nodeName":"a"}}}}`, `{"spec":{"template":{"spec":{"nodeName":"b"}}}}`
	for name, documents := range map[string][]string{"alone": {bars}, "before a document about the kind": {bars, other}, "after it": {other, bars}} {
		s := compile(documents...)
		if got := passing(t, s, run, nil, old, changed); !strings.Contains(got, "[y]") {
			t.Errorf("%s: Run needs %q", name, got)
		}
		if got := passing(t, s, zun, nil, old, changed); got != "[y]" {
			t.Errorf("%s: Zun needs %q", name, got)
		}
	}
	s := compile(fragmentSchema("podSpec", `{path: .nodeName, verb: example.com/y, excluded: true}, {path: .hostNetwork, verb: Bad, excluded: true}`))
	for _, kind := range []runtimeschema.GroupVersionKind{run, zun, gvk("", "v1", "Pod")} {
		if _, err := s.Kind(kind); err == nil {
			t.Errorf("%s compiles without a barrier of a faulty document", kind.Kind)
		}
	}
}

// TestC2_WhatFailsInOneKindOnlyIsAFaultOfTheIncludeThere: the author of a definition must not make every kind with the fragment fail.
func TestC2_WhatFailsInOneKindOnlyIsAFaultOfTheIncludeThere(t *testing.T) {
	template := strings.Replace(partial(withKey+", ", listed), "nodeName: {type: string}", "nodeName: {type: string}, affinity: {type: object, x-kubernetes-permission-include: podSpec, properties: {nodeName: {type: string}}}", 1)
	s, errs := compileFragments(t, runner(template), fragmentSchema("podSpec", `{path: "", verb: example.com/y, excluded: true}, {path: .affinity, verb: example.com/z, excluded: true}`))
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "d0.yaml:") || !strings.Contains(errs[0].Error(), "stands twice") {
		t.Errorf("faults %v, want one of the definition", errs)
	}
	if _, err := s.Kind(gvk("apps", "v1", "Deployment")); err != nil {
		t.Errorf("another kind fails: %v", err)
	}
	if _, err := s.Kind(gvk("example.com", "v1", "Runner")); err == nil {
		t.Error("the kind with the include does not fail")
	}
}
