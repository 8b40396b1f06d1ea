package schemacheck_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/verbs"
)

func compileWith(t *testing.T, documents ...string) (*schema.Schema, *schemacheck.Sets, []error) {
	t.Helper()
	return schemacheck.Compile(schematest.Documents(t, documents...))
}

func setOf(verbs, resources, conditions string) string {
	return schematest.UncoveredSet("x", "{uncoveredPermissions: ["+verbs+"], resources: ["+resources+"], matchConditions: ["+conditions+"]}")
}

func schemaOf(group, kind, entries string) string {
	return schematest.PermissionSchema("x", group, kind, entries)
}

const deployments = "{apiGroups: [apps], resources: [deployments]}"

// A barrier that guards no field looks like one that holds.
func TestC2_ASetWithoutEffectIsAFault(t *testing.T) {
	for name, c := range map[string]struct {
		verbs, resources, conditions, want string
		unmatched                          bool
	}{
		"resource":             {"'granular:scale'", "{apiGroups: [apps], resources: [deployment]}", "", `write "deployments"`, false},
		"group":                {"'granular:scale'", "{apiGroups: [extension], resources: [deployments]}", "", `it is in group "apps"`, false},
		"subresource":          {"'granular:scale'", "{apiGroups: [apps], resources: [deployments/scales]}", "", `has no subresource "scales"`, false},
		"verb":                 {"'granular:scaled'", deployments, "", `the nearest verb that does is "granular:scale"`, false},
		"verb with a domain":   {"'granular:example.com/scale'", deployments, "", `guards no field of "deployments.apps" yet, so that it is no barrier: apply the document that gives it`, true},
		"verb of creations":    {"'granular:creation'", deployments, "", `is that of the existence of an object, and guards no field: refuse creations with a ConditionalPolicy of effect Deny for create`, false},
		"verb of no kind":      {"'granular:nothing'", deployments, "", `doc0:/spec/uncoveredPermissions/0: verb "granular:nothing" guards no field of "deployments.apps": docs/reference/kinds.md has the verbs of each kind`, false},
		"verb of another kind": {"'granular:taints'", deployments, "", `guards no field of "deployments.apps"`, false},
		"verb of another part": {"'granular:image(web)'", "{apiGroups: [apps], resources: [deployments/scale]}", "", `guards no field of "deployments/scale.apps"`, false},
		"part of the object":   {"'granular:image(web)'", "{apiGroups: [''], resources: [pods/status]}", "", `guards no field of "pods/status"`, false},
		"no parameter":         {"'granular:scale(x)'", deployments, "", `never has a parameter`, false},
		"no such parameter":    {"'granular:label(a/b)'", deployments, "", `write "granular:label(a)"`, false},
		"one of two resources": {"'granular:scale'", deployments + ", {apiGroups: [''], resources: [configmaps]}", "", `none of the verbs guards a field of "configmaps"`, false},
		"condition's field":    {"'granular:scale'", deployments, "{name: a, expression: 'request.userinfo.username == \"x\"'}", "undefined field 'userinfo'", false},
		"condition's type":     {"'granular:scale'", deployments, "{name: a, expression: 'request.userInfo.username == 1'}", "no matching overload", false},
		"every subresource":    {"'granular:scale'", "{apiGroups: [apps], resources: [deployments/*]}", "", `write "deployments", which stands for its subresources too`, false},
		"all of webhook rules": {"'granular:scale'", "{apiGroups: ['*'], resources: ['*/*']}", "", `write "*", which stands`, false},
		"kind to come":         {"'granular:scale'", deployments + ", {apiGroups: [tocome.example.com], resources: [comings]}", "", "install its definition first", true},
		"verb to come":         {"'granular:scale', 'granular:example.com/x'", deployments + ", {apiGroups: [tocome.example.com], resources: [comings]}", "", `"granular:example.com/x" guards no field of any known kind`, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, errs := compileWith(t, setOf(c.verbs, c.resources, c.conditions))
			found := false
			for _, err := range errs {
				var e *schema.Error
				if !errors.As(err, &e) || e.Unmatched != c.unmatched {
					t.Errorf("%v: unmatched is not %t", err, c.unmatched)
				}
				found = found || strings.Contains(err.Error(), c.want)
			}
			if !found {
				t.Errorf("got %v, want %q", errs, c.want)
			}
		})
	}
	if _, _, errs := compileWith(t, setOf("'granular:scale', 'granular:image(web)', 'granular:label(a)'", deployments, "{name: a, expression: 'request.userInfo.username != \"x\" && request.name != \"y\"'}")); len(errs) > 0 {
		t.Errorf("a good one: %v", errs)
	}
}

func TestC2_ABarrierForAKindToComeIsReportedAndHolds(t *testing.T) {
	s, _, errs := compileWith(t, setOf("'granular:toCome'", "", ""))
	var e *schema.Error
	if len(errs) != 1 || !errors.As(errs[0], &e) || !e.Unmatched {
		t.Errorf("errors %v, want one that is unmatched", errs)
	}
	v, err := verbs.Parse("granular:toCome")
	if err != nil {
		t.Fatal(err)
	}
	if set, err := s.Uncovered(t.Context(), schema.ResourceRef{Resource: "pods"}, nil); err != nil || !set.Has(v) {
		t.Errorf("uncovered %v, %v, want %s", set, err, v)
	}
}

// A verb is not a second fault of a set whose resources are all wrong.
func TestC2_AVerbIsJudgedOnResourcesThatExist(t *testing.T) {
	_, _, errs := compileWith(t, setOf("'granular:imag'", "{apiGroups: [''], resources: [pod]}", ""))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), `write "pods"`) {
		t.Errorf("errors: %v, want one, of the resource", errs)
	}
}

func TestC2_GuardedFieldsAreCounted(t *testing.T) {
	_, s, errs := compileWith(t, setOf("'granular:image(web)', 'granular:scale'", deployments+", {apiGroups: [''], resources: [pods]}, {apiGroups: [apps], resources: [statefulsets/scale]}", ""))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := fmt.Sprint(s.GuardedFields("doc0"))
	if want := "[{apps deployments 4} { pods 3} {apps statefulsets/scale 1}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// The verb of images is a fault there, and has no effect.
	_, parts, errs := compileWith(t, setOf("'granular:image(web)', 'granular:conditions'", "{apiGroups: [''], resources: [pods/status]}", ""))
	if len(errs) != 1 {
		t.Fatal(errs)
	}
	if got := fmt.Sprint(parts.GuardedFields("doc0")); got != "[{ pods/status 1}]" {
		t.Errorf("of a part: %s", got)
	}
	if other := s.GuardedFields("doc1"); other != nil {
		t.Errorf("of another set: %v", other)
	}
}

func TestF4_VerbsThatAreTaken(t *testing.T) {
	before, _, errs := compileWith(t)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	after, _, errs := compileWith(t, schemaOf("apps", "Deployment", "{path: '.spec.template.spec.containers[*].image', verb: example.com/any}, {path: .spec.replicas, verb: scale}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	deployment := runtimeschema.GroupKind{Group: "apps", Kind: "Deployment"}
	taken := schemacheck.TakenFrom(deployment, before, after)
	if len(taken) != 1 || taken[0].Path.String() != ".spec.template.spec.containers[*].image" {
		t.Fatalf("taken: %v", taken)
	}
	for verb, want := range map[string]bool{"granular:image": true, "granular:image(web)": true, "granular:scale": false, "granular": false, "*": false} {
		if taken[0].Is(verb) != want {
			t.Errorf("%s: %t", verb, !want)
		}
	}
	if more := schemacheck.TakenFrom(deployment, before, before); len(more) > 0 {
		t.Errorf("nothing changed: %v", more)
	}
}

// A holder of a verb with a parameter loses the field if the parameter stands for other values. The verb without a parameter keeps it.
func TestF4_VerbsWhoseParameterChangesAreTaken(t *testing.T) {
	before, _, errs := compileWith(t)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	node := runtimeschema.GroupKind{Kind: "Node"}
	after, _, errs := compileWith(t, schemaOf("", "Node", "{path: '.metadata.labels[*]', verb: label, parameterizedBy: labelKey}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	taken := schemacheck.TakenFrom(node, before, after)
	if len(taken) != 1 || taken[0].Path.String() != ".metadata.labels[*]" || taken[0].String() != "granular:label(…)" {
		t.Fatalf("taken: %v", taken)
	}
	for verb, want := range map[string]bool{"granular:label": false, "granular:label(example.com)": true, "granular:labels": false} {
		if taken[0].Is(verb) != want {
			t.Errorf("%s: %t", verb, !want)
		}
	}
	// A verb that gets a parameter still covers the field.
	more, _, errs := compileWith(t, schemaOf("", "Node", "{path: .spec.taints, verb: taints, parameterizedBy: taint, parameterSource: taint}"))
	if got := schemacheck.TakenFrom(node, before, more); len(errs) == 0 && len(got) > 0 {
		t.Errorf("taken: %v", got)
	}
}

// A set about a fragment holds for each resource that contains it, and for no other.
func TestC2_ASetAboutAFragmentHoldsForResourcesThatContainIt(t *testing.T) {
	definition := schematest.Definition{
		Kind: "Widget", Verbs: `[{"path": ".spec.template", "include": "podTemplate"}]`,
		Properties: `spec: {type: object, properties: {template: {type: object, properties: {spec: {type: object, properties: {hostNetwork: {type: boolean}}}}}}}`,
	}.String()
	set := schematest.UncoveredSet("x", "{uncoveredPermissions: ['granular:hostNamespaces'], fragment: podSpec}")
	s, _, errs := compileWith(t, definition, set)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for resource, want := range map[schema.ResourceRef]bool{
		{Group: "", Version: "v1", Resource: "pods"}:                                     true,
		{Group: "", Version: "v1", Resource: "pods", Subresource: "ephemeralcontainers"}: true,
		{Group: "apps", Version: "v1", Resource: "deployments"}:                          true,
		{Group: "batch", Version: "v1", Resource: "cronjobs"}:                            true,
		{Group: "example.com", Version: "v1", Resource: "widgets"}:                       true,
		{Group: "", Version: "v1", Resource: "configmaps"}:                               false,
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}:         false,
	} {
		barriers, err := s.Uncovered(t.Context(), resource, nil)
		if err != nil || len(barriers) > 0 != want {
			t.Errorf("%v: barriers %v, error %v, want a barrier: %v", resource, barriers, err, want)
		}
	}
}

// What is wrong about the fragment of a set is a fault, and the set then bars more, not less.
func TestC2_AFaultyFragmentOfASetBarsMore(t *testing.T) {
	for spec, want := range map[string]string{
		"fragment: podspec": `/spec/fragment: fragment "podspec" does not exist: use one of ["conditions" "jobSpec" "metadata" "podSpec" "podTemplate"]`,
		"fragment: podSpec, resources: [{apiGroups: [''], resources: [configmaps]}]": `/spec/fragment: the set names resources too: leave out one of the two`,
	} {
		s, _, errs := compileWith(t, schematest.UncoveredSet("x", "{uncoveredPermissions: ['granular:hostNamespaces'], "+spec+"}"))
		if !slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), want) }) {
			t.Errorf("%s: errors %v, want %q", spec, errs, want)
		}
		for _, resource := range []string{"pods", "configmaps"} {
			if barriers, err := s.Uncovered(t.Context(), schema.ResourceRef{Version: "v1", Resource: resource}, nil); err != nil || len(barriers) == 0 {
				t.Errorf("%s: no barrier for %s, error %v", spec, resource, err)
			}
		}
	}
}
