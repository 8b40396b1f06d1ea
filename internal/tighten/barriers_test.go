package tighten

import (
	"errors"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/printable"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// widgets is a definition with a conditional barrier and one that always holds.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              dangerous: {type: boolean}
              budget:
                type: object
                properties: {limit: {type: integer}, note: {type: string}}
              color: {type: string}
---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: widgets}
spec:
  group: example.com
  kind: Widget
  permissions:
  - {path: .spec.dangerous, verb: example.com/danger, excludedWhen: "self == true"}
  - {path: .spec.budget, verb: example.com/budget, excluded: true}
  - {path: .spec.budget.limit, verb: example.com/limit}
  - {path: .spec.color, verb: example.com/color}
`

// set is an UncoveredPermissionSet. more are further lines of its spec.
func set(name, verb, group, resource, more string) string {
	return `
---
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: ` + name + `}
spec:
  uncoveredPermissions: ["` + verb + `"]
  resources:
  - {apiGroups: ["` + group + `"], resources: ["` + resource + `"]}
` + more
}

// barriersOf compiles documents besides those that are built in.
func barriersOf(t *testing.T, text string) *Barriers {
	t.Helper()
	documents := schematest.Documents(t)
	for _, one := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		name := "set"
		if at := strings.Index(one, "metadata: {name: "); at >= 0 {
			name, _, _ = strings.Cut(one[at+len("metadata: {name: "):], "}")
		}
		documents = documents.Append(schematest.Decode(t, name, one))
	}
	compiled, errs := compile.Compile(documents)
	for _, err := range errs {
		var fault *schema.Error
		if !errors.As(err, &fault) || !fault.Unmatched {
			t.Fatal(err)
		}
	}
	return NewBarriers(documents, compiled, func(runtimeschema.GroupVersionKind) error { return nil })
}

// C2: a verb passes a barrier if it is the verb of the barrier or below it. Conditions and actions do not matter.
func TestC2_BarriersThatAVerbPasses(t *testing.T) {
	images := set("images", "granular:image", "apps", "deployments", "")
	for name, c := range map[string]struct {
		documents, group, resource string
		passes, does               string
	}{
		"no barrier":          {"", "apps", "deployments", "", "granular:image(web) granular:* granular:example.com/unknown"},
		"without a parameter": {images, "apps", "deployments", "granular:image granular:image(web)", "granular granular:scale granular:container(web) granular:containers granular:specification granular:*"},
		"with a parameter": {set("web", "granular:image(web)", "apps", "deployments", ""), "apps", "deployments",
			"granular:image(web)", "granular:image granular:image(api) granular:container(web) granular:*"},
		"of an item": {set("web", "granular:container(web)", "apps", "deployments", ""), "apps", "deployments",
			"granular:container(web) granular:image granular:image(web)", "granular:image(api) granular:container granular:container(api) granular:containers granular:scale"},
		"of the root":            {set("all", "granular:*", "apps", "deployments", ""), "apps", "deployments", "granular:scale granular:image(web) granular:metadata granular:*", "granular"},
		"above":                  {set("spec", "granular:specification", "apps", "deployments", ""), "apps", "deployments", "granular:scale granular:image(web) granular:specification", "granular:* granular:label(a) granular:metadata"},
		"with a condition":       {set("images", "granular:image", "apps", "deployments", "  matchConditions: [{name: prod, expression: \"request.namespace == 'prod'\"}]\n"), "apps", "deployments", "granular:image(web)", "granular:scale"},
		"only warns":             {set("images", "granular:image", "apps", "deployments", "  validationActions: [Warn]\n"), "apps", "deployments", "granular:image(web)", "granular:scale"},
		"every resource":         {set("images", "granular:image", "*", "*", ""), "apps", "deployments", "granular:image(web)", "granular:scale"},
		"another resource":       {images, "apps", "statefulsets", "", "granular:image(web)"},
		"a subresource of it":    {images, "apps", "deployments/status", "granular:image(web)", "granular:condition(Available)"},
		"the set names the part": {set("status", "granular:condition", "apps", "deployments/status", ""), "apps", "deployments", "granular:condition(Available)", "granular:image(web)"},
		"another group's name":   {set("events", "granular:label", "", "events", ""), "events.k8s.io", "events", "granular:label(a)", "granular:annotation(a)"},
		"a scale":                {set("scale", "granular:scale", "apps", "deployments", ""), "apps", "deployments/scale", "granular:scale", "granular:label(a)"},
		"all resources":          {images, "*", "*", "granular:image(web)", "granular:scale"},
		"all of a group":         {images, "apps", "*", "granular:image(web)", "granular:scale"},
		"all of another group":   {images, "batch", "*", "", "granular:image(web)"},
		"all of a subresource":   {images, "*", "*/status", "granular:image(web)", "granular:condition(A)"},
		"excludedWhen":           {widgets, "example.com", "widgets", "granular:example.com/danger", "granular:example.com/color granular:specification granular:*"},
		"excluded":               {widgets, "example.com", "widgets", "granular:example.com/budget granular:example.com/limit", "granular:example.com/color granular:*"},
		"a definition with a set": {widgets + set("color", "granular:example.com/color", "example.com", "widgets", ""), "example.com", "widgets",
			"granular:example.com/color granular:example.com/danger", "granular:label(a)"},
		"nothing is known of it": {"", "example.com", "widgets", "granular:label(a) granular:*", "granular"},
	} {
		t.Run(name, func(t *testing.T) {
			b := barriersOf(t, c.documents)
			r := Resource{c.group, c.resource}
			for _, verb := range strings.Fields(c.passes) {
				if len(b.Passed(r, verb)) == 0 {
					t.Errorf("%s passes no barrier", verb)
				}
			}
			for _, verb := range strings.Fields(c.does) {
				if passed := b.Passed(r, verb); len(passed) > 0 {
					t.Errorf("%s passes %q", verb, passed)
				}
			}
		})
	}
}

// TestBarriers_WhatIsNotKnownMayBePassed: without a schema every verb may pass a barrier, except where the caller says that it does not look.
func TestBarriers_WhatIsNotKnownMayBePassed(t *testing.T) {
	r := Resource{"apps", "deployments"}
	faulty := barriersOf(t, "")
	faulty.fault = func(runtimeschema.GroupVersionKind) error { return errors.New("a document is faulty") }
	for name, c := range map[string]struct {
		barriers *Barriers
		want     string
	}{
		"nil":     {nil, "no schema is known"},
		"zero":    {&Barriers{}, "no schema is known"},
		"faulty":  {faulty, "a document is faulty"},
		"unknown": {&Barriers{Unknown: true}, ""},
	} {
		if got := strings.Join(c.barriers.Passed(r, "granular:scale"), ""); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
		if got := c.barriers.Passed(r, "granular"); len(got) > 0 {
			t.Errorf("%s: the marker passes %q", name, got)
		}
	}
}

// TestBarriers_EveryKindIsSearched: no built-in kind has so many guarded fields that its barriers are not known.
func TestBarriers_EveryKindIsSearched(t *testing.T) {
	b := barriersOf(t, set("all", "granular:labels", "*", "*", ""))
	for r := range b.kinds {
		if whole := b.of(r).whole; whole != "" {
			t.Errorf("%s: %s", r, whole)
		}
	}
}

// C2: what the subject holds of granular verbs covers a verb that passes a barrier, update and patch do not.
func TestC2_ProveAsksForGranularVerbsBehindABarrier(t *testing.T) {
	images := set("images", "granular:image", "apps", "deployments", "")
	web := set("web", "granular:image(web)", "apps", "deployments", "")
	for name, c := range map[string]struct {
		rule, documents string
		new             int
	}{
		"update":   {`{apiGroups: [apps], resources: [deployments], verbs: [create, update, patch]}`, images, 1},
		"the verb": {`{apiGroups: [apps], resources: [deployments], verbs: [create, update, patch, "granular:image(web)"]}`, images, 0},
		"the verb of all parameters, not a barrier":     {`{apiGroups: [apps], resources: [deployments], verbs: [create, update, patch, "granular:image"]}`, "", 0},
		"the verb of all parameters, above the barrier": {`{apiGroups: [apps], resources: [deployments], verbs: [create, update, patch, "granular:image"]}`, web, 1},
		"granular:*":               {`{apiGroups: [apps], resources: [deployments], verbs: [create, update, patch, "granular:*"]}`, images, 1},
		"every verb":               {`{apiGroups: [apps], resources: [deployments], verbs: ["*"]}`, images, 0},
		"the verb on another name": {`{apiGroups: [apps], resources: [deployments], verbs: [create, update, patch]}, {apiGroups: [apps], resources: [deployments], resourceNames: [web], verbs: ["granular:image(web)"]}`, images, 1},
	} {
		t.Run(name, func(t *testing.T) {
			barriers := barriersOf(t, c.documents)
			objects := grants(t, bound(c.rule, ""))
			p := propose(t, operator, objects, webLog, func(o *Options) { o.Barriers = barriers })
			if len(p.New) != c.new || p.Complete() != (c.new == 0) {
				t.Errorf("new: %q", p.New)
			}
			if got := strings.Contains(diffs(t, p), "+  - granular:image(web)"); got != (c.new == 0) {
				t.Errorf("the verb is in the proposal: %t", got)
			}
			p = propose(t, operator, objects, webLog, func(o *Options) { o.Barriers, o.AllowNew = barriers, true })
			if proof := Prove(p, objects, nil, barriers); len(proof.New) != c.new || c.new > 0 && !strings.Contains(proof.New[0], `it may pass the barrier granular:image`) {
				t.Errorf("the proof finds %q", proof.New)
			}
		})
	}
}

// C5: create covers granular:creation, and update does not.
func TestC5_ProveFindsTheVerbOfCreations(t *testing.T) {
	for rule, want := range map[string]int{deployments: 1, `{apiGroups: [apps], resources: [deployments], verbs: [get, update, patch, create]}`: 0} {
		objects := grants(t, bound(rule, ""))
		p := propose(t, operator, objects, webLog, func(o *Options) {
			o.AllowNew, o.Also = true, []Also{{Resource: Resource{"apps", "deployments"}, Verb: "granular:creation"}}
		})
		if proof := Prove(p, objects, nil, &Barriers{Unknown: true}); len(proof.New) != want {
			t.Errorf("%s: %q", rule, proof.New)
		}
	}
}

// The proposal has get, without which the marker lets nobody in to update or patch.
func TestA7_ProveFindsObjectsThatTheSubjectMayRead(t *testing.T) {
	status := line("apps/deployments", "status", "team", "web", "granular:condition(A)")
	for name, c := range map[string]struct{ rule, log, want string }{
		"update only":                 {`{apiGroups: [apps], resources: [deployments], verbs: [update]}`, webLog, "may also read deployments.apps"},
		"patch":                       {`{apiGroups: [apps], resources: [deployments], verbs: [patch]}`, webLog, ""},
		"update and get":              {`{apiGroups: [apps], resources: [deployments], verbs: [get, update]}`, webLog, ""},
		"update and list":             {`{apiGroups: [apps], resources: [deployments], verbs: [list, update]}`, webLog, ""},
		"get of a name":               {`{apiGroups: [apps], resources: [deployments], verbs: [update]}, {apiGroups: [apps], resources: [deployments], resourceNames: [web], verbs: [get]}`, webLog, "read deployments.apps"},
		"names":                       {`{apiGroups: [apps], resources: [deployments], resourceNames: [web], verbs: [get, update]}`, webLog, ""},
		"a subresource":               {`{apiGroups: [apps], resources: [deployments/status], verbs: [update]}`, status, "read deployments/status.apps"},
		"get of the whole object":     {`{apiGroups: [apps], resources: [deployments/status], verbs: [update]}, {apiGroups: [apps], resources: [deployments], verbs: [get]}`, status, ""},
		"the marker is held":          {`{apiGroups: [apps], resources: [deployments], verbs: [update, granular]}`, webLog, "may also read deployments.apps"},
		"the marker is held with get": {`{apiGroups: [apps], resources: [deployments], verbs: [update, granular, get]}`, webLog, ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := grants(t, bound(c.rule, ""))
			p := propose(t, operator, objects, c.log)
			got := strings.Join(Prove(p, objects, nil, &Barriers{Unknown: true}).Read, "; ")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestYAML_EscapesWhatMovesTheCursor: the text says the same.
func TestYAML_EscapesWhatMovesTheCursor(t *testing.T) {
	content, err := YAML(map[string]string{"a": "\u009b\u202e\x7f", "b": "c"})
	if err != nil || slices.ContainsFunc([]rune(string(content)), printable.Hidden) {
		t.Errorf("YAML is %q, %v", content, err)
	}
}
