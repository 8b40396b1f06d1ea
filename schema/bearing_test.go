package schema_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/schematest"
)

func compileWith(t *testing.T, documents ...string) (*schema.Schema, []error) {
	t.Helper()
	return schema.Compile(schematest.Documents(t, documents...))
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
			_, errs := compileWith(t, setOf(c.verbs, c.resources, c.conditions))
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
	if _, errs := compileWith(t, setOf("'granular:scale', 'granular:image(web)', 'granular:label(a)'", deployments, "{name: a, expression: 'request.userInfo.username != \"x\" && request.name != \"y\"'}")); len(errs) > 0 {
		t.Errorf("a good one: %v", errs)
	}
}

// A verb is not a second fault of a set whose resources are all wrong.
func TestC2_AVerbIsJudgedOnResourcesThatExist(t *testing.T) {
	_, errs := compileWith(t, setOf("'granular:imag'", "{apiGroups: [''], resources: [pod]}", ""))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), `write "pods"`) {
		t.Errorf("errors: %v, want one, of the resource", errs)
	}
}

// A condition counts as true if it fails or if its context has ended; it is false only if it returns false.
func TestC2_MatchConditionsKnowTheRequest(t *testing.T) {
	s, errs := compileWith(t, setOf("'granular:scale'", deployments, "{name: a, expression: 'request.userInfo.username == \"alice\" && request.namespace == \"shop\" && request.dryRun'}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}
	for user, want := range map[string]int{"alice": 1, "bob": 0} {
		request := func() (map[string]any, error) {
			return map[string]any{"userInfo": map[string]any{"username": user}, "namespace": "shop", "dryRun": true}, nil
		}
		if got, err := s.Uncovered(context.Background(), ref, request); err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", user, got, err)
		}
	}
}

// If a set with a refused notation exists nevertheless, its barriers are as strong as with the correct notation.
func TestC2_TheNotationOfWebhookRulesBars(t *testing.T) {
	for _, resource := range []string{"'*/*'", "deployments/*"} {
		s, _ := compileWith(t, setOf("'granular:scale'", "{apiGroups: [apps], resources: ["+resource+"]}", ""))
		for _, subresource := range []string{"", "scale"} {
			ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: subresource}
			if got, err := s.Uncovered(t.Context(), ref, nil); err != nil || len(got) != 1 {
				t.Errorf("%s: %q: %v, %v", resource, subresource, got, err)
			}
		}
	}
}

func TestC2_GuardedFieldsAreCounted(t *testing.T) {
	s, errs := compileWith(t, setOf("'granular:image(web)', 'granular:scale'", deployments+", {apiGroups: [''], resources: [pods]}, {apiGroups: [apps], resources: [statefulsets/scale]}", ""))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := fmt.Sprint(s.GuardedFields("doc0"))
	if want := "[{apps deployments 4} { pods 3} {apps statefulsets/scale 1}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// The verb of images is a fault there, and has no effect.
	parts, errs := compileWith(t, setOf("'granular:image(web)', 'granular:conditions'", "{apiGroups: [''], resources: [pods/status]}", ""))
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

// Barriers returns, for any name of an endpoint, the barriers by which a probe of it may be refused.
func TestA6_BarriersOfAnEndpoint(t *testing.T) {
	scale, other := setOf("'granular:scale'", deployments, "{name: a, expression: 'false'}"), setOf("'granular:label(a)'", deployments, "")
	s, errs := compileWith(t, scale, other, schemaOf("apps", "StatefulSet", "{path: .spec.serviceName, verb: example.com/service, excluded: true}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for at, want := range map[schema.ResourceRef][]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}:                           {"doc0", "doc1"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"}:                          {schema.Excluded},
		{Group: "apps", Version: "v1", Resource: "daemonsets"}:                            nil,
		{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "notserved"}: {"doc0", "doc1"},
	} {
		kinds := map[string]string{"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
		k, err := s.KindFor(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kinds[at.Resource]}, at)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range s.Barriers(k, at) {
			name, _, _ := strings.Cut(b, " ")
			got = append(got, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
	docs, _ := load.Decode("doc0", []byte(scale))
	changed, _ := load.Decode("doc0", []byte(strings.Replace(scale, "'false'", "'true'", 1)))
	if schema.SetBarrier(&docs.Uncovered[0]) == schema.SetBarrier(&changed.Uncovered[0]) {
		t.Error("another content is the same barrier")
	}
}

func TestF4_VerbsThatAreTaken(t *testing.T) {
	before, errs := compileWith(t)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	after, errs := compileWith(t, schemaOf("apps", "Deployment", "{path: '.spec.template.spec.containers[*].image', verb: example.com/any}, {path: .spec.replicas, verb: scale}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	deployment := runtimeschema.GroupKind{Group: "apps", Kind: "Deployment"}
	taken := schema.TakenFrom(deployment, before, after)
	if len(taken) != 1 || taken[0].Path.String() != ".spec.template.spec.containers[*].image" {
		t.Fatalf("taken: %v", taken)
	}
	for verb, want := range map[string]bool{"granular:image": true, "granular:image(web)": true, "granular:scale": false, "granular": false, "*": false} {
		if taken[0].Is(verb) != want {
			t.Errorf("%s: %t", verb, !want)
		}
	}
	if more := schema.TakenFrom(deployment, before, before); len(more) > 0 {
		t.Errorf("nothing changed: %v", more)
	}
}

// A holder of a verb with a parameter loses the field if the parameter stands for other values. The verb without a parameter keeps it.
func TestF4_VerbsWhoseParameterChangesAreTaken(t *testing.T) {
	before, errs := compileWith(t)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	node := runtimeschema.GroupKind{Kind: "Node"}
	after, errs := compileWith(t, schemaOf("", "Node", "{path: '.metadata.labels[*]', verb: label, parameterizedBy: labelKey}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	taken := schema.TakenFrom(node, before, after)
	if len(taken) != 1 || taken[0].Path.String() != ".metadata.labels[*]" || taken[0].String() != "granular:label(…)" {
		t.Fatalf("taken: %v", taken)
	}
	for verb, want := range map[string]bool{"granular:label": false, "granular:label(example.com)": true, "granular:labels": false} {
		if taken[0].Is(verb) != want {
			t.Errorf("%s: %t", verb, !want)
		}
	}
	// A verb that gets a parameter still covers the field.
	more, errs := compileWith(t, schemaOf("", "Node", "{path: .spec.taints, verb: taints, parameterizedBy: taint, parameterSource: taint}"))
	if got := schema.TakenFrom(node, before, more); len(errs) == 0 && len(got) > 0 {
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
	s, errs := compileWith(t, definition, set)
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
		s, errs := compileWith(t, schematest.UncoveredSet("x", "{uncoveredPermissions: ['granular:hostNamespaces'], "+spec+"}"))
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
