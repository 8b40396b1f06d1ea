package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

const (
	vouched   = `, annotations: {fieldperm.dev/lossless-conversion: "true"}`
	byWebhook = "  conversion: {strategy: Webhook}"
	named     = `{type: object, properties: {size: {type: integer}, secret: {type: string}, pair: {type: object, properties: {a: {type: string}}}}}`
	renamed   = `{type: object, properties: {size: {type: integer}, hidden: {type: string}, pair: {type: object, properties: {a: {type: string}, b: {type: string}}}}}`
)

func guardOf(kind, versions, entries string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: example.com, kind: " + kind + ", versions: [" + versions + "], permissions: [" + entries + "]}\n"
}

// barsOn returns the barriers at the root that a change must pass.
func barsOn(t *testing.T, s *schema.Schema, gvk runtimeschema.GroupVersionKind, ref schema.ResourceRef, old, new string, uncovered ...string) []string {
	t.Helper()
	k, err := s.KindFor(gvk, ref)
	if err != nil {
		t.Fatal(err)
	}
	set := barriersOf(t, uncovered...)
	var before []byte
	if old != "" {
		before = []byte(old)
	}
	got, err := fieldperm.Diff(t.Context(), before, []byte(new), k, set)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range got {
		if got[i].Barred() && got[i].Path.String() == "." {
			out = append(out, fmt.Sprint(got[i].Candidates()))
			if !strings.Contains(got[i].Instead, "permission schema") {
				t.Errorf("the advice is %q", got[i].Instead)
			}
		}
	}
	return out
}

// TestA2_AnotherNameOfAFieldHasItsBarrier: a conversion that is declared lossless keeps every field, but no document says which
// field of one version becomes which field of another.
func TestA2_AnotherNameOfAFieldHasItsBarrier(t *testing.T) {
	const (
		secret  = `{path: .spec.secret, verb: secret, excluded: true}`
		written = `{"metadata":{"name":"x"},"spec":{"size":1,"hidden":"b"}}`
		before  = `{"metadata":{"name":"x"},"spec":{"size":1,"hidden":"a"}}`
	)
	bars := []string{"[granular:secret]"}
	for name, c := range map[string]struct {
		versions  versions
		documents []string
		create    bool
		new       string
		uncovered []string
		want      []string
	}{
		"of an administrator, for one version":             {documents: []string{guardOf("Box", "v1", secret)}, want: bars},
		"of an administrator, for every version":           {documents: []string{guardOf("Box", "", secret)}, want: bars},
		"at times":                                         {documents: []string{guardOf("Box", "v1", `{path: .spec.secret, verb: secret, excludedWhen: self == 'x'}`)}, want: bars},
		"of what holds the field":                          {documents: []string{guardOf("Box", "v1", `{path: .spec.pair, verb: secret, excluded: true}`)}, want: bars},
		"of a set":                                         {documents: []string{guardOf("Box", "v1", `{path: .spec.secret, verb: secret}`)}, uncovered: []string{"granular:secret"}, want: bars},
		"of the author":                                    {versions: versions{metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true", fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.secret","verb":"secret","excluded":true}],"v1beta1":[]}'}`}, want: bars},
		"another field":                                    {documents: []string{guardOf("Box", "v1", secret)}, new: `{"metadata":{"name":"x"},"spec":{"size":2,"hidden":"a"}}`, want: bars},
		"an annotation, where webhooks keep fields":        {documents: []string{guardOf("Box", "v1", secret)}, new: `{"metadata":{"name":"x","annotations":{"a":"b"}},"spec":{"size":1,"hidden":"a"}}`, want: bars},
		"a creation":                                       {documents: []string{guardOf("Box", "v1", secret)}, create: true, new: `{"metadata":{"name":"x"}}`, want: bars},
		"a write of nothing":                               {documents: []string{guardOf("Box", "v1", secret)}, new: before},
		"a part that both versions have":                   {documents: []string{guardOf("Box", "v1", secret)}, new: `{"metadata":{"name":"x"},"spec":{"size":1,"hidden":"a"},"status":{"size":1}}`, want: bars},
		"the same field in both":                           {documents: []string{guardOf("Box", "v1", `{path: .spec.size, verb: size, excluded: true}`)}},
		"a label":                                          {documents: []string{guardOf("Box", "v1", `{path: '.metadata.labels["a"]', verb: label, excluded: true}`)}},
		"a field of another type in what holds it":         {versions: versions{v1beta1: strings.Replace(named, "a: {type: string}", "a: {type: object, properties: {b: {type: string}}}", 1)}, documents: []string{guardOf("Box", "v1", `{path: .spec.pair, verb: secret, excluded: true}`)}, new: `{"metadata":{"name":"x"},"spec":{"size":2,"hidden":"a"}}`, want: bars},
		"a verb without a barrier":                         {documents: []string{guardOf("Box", "v1", `{path: .spec.secret, verb: secret}`)}},
		"both versions have their own":                     {documents: []string{guardOf("Box", "v1", secret), guardOf("Box", "v1beta1", `{path: .spec.hidden, verb: secret, excluded: true}`)}},
		"one of two has its own":                           {documents: []string{guardOf("Box", "v1", secret+`, {path: .spec.pair, verb: secret, excluded: true}`), guardOf("Box", "v1beta1", `{path: .spec.hidden, verb: secret, excluded: true}`)}, want: bars},
		"a field without the barrier has the verb too":     {documents: []string{guardOf("Box", "v1", secret), guardOf("Box", "v1beta1", `{path: .spec.hidden, verb: secret}, {path: .spec.pair.b, verb: secret, excluded: true}`)}, want: bars},
		"its own is weaker":                                {documents: []string{guardOf("Box", "v1", secret), guardOf("Box", "v1beta1", `{path: .spec.hidden, verb: secret, excludedWhen: self == 'x'}`)}, want: bars},
		"its own is of what both have":                     {documents: []string{guardOf("Box", "v1", secret), guardOf("Box", "v1beta1", `{path: .spec.size, verb: secret, excluded: true}`)}, want: bars},
		"its own is of a document about every version":     {documents: []string{guardOf("Box", "v1", secret), guardOf("Box", "", `{path: .spec.hidden, verb: secret, excluded: true}`), guardOf("Box", "v1beta1", `{path: .spec.size, verb: secret}`)}},
		"its own barrier is beside another verb":           {documents: []string{guardOf("Box", "v1", secret), guardOf("Box", "", `{path: .spec.hidden, verb: secret, excluded: true}`), guardOf("Box", "v1beta1", `{path: .spec.hidden, verb: other}`)}},
		"the parent of the field, for every version":       {documents: []string{guardOf("Box", "", `{path: .spec.pair, verb: secret, excluded: true}`)}},
		"the parent of the field, named for both versions": {documents: []string{guardOf("Box", "v1, v1beta1", `{path: .spec.pair, verb: secret, excluded: true}`)}},
		"a version that only changes its name":             {versions: versions{v1: named, v1beta1: named, metadata: vouched}, documents: []string{guardOf("Box", "v1", secret)}},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.versions
			v.v1, v.v1beta1, v.top = named, renamed, byWebhook
			if c.versions.v1beta1 != "" {
				v.v1beta1 = c.versions.v1beta1
			}
			if v.metadata == "" {
				v.metadata = vouched
			}
			definition := strings.ReplaceAll(v.String(), "spec: {type", "status: {type: object, properties: {size: {type: integer}}}, spec: {type")
			old, now := before, written
			if c.create {
				old = ""
			}
			if c.new != "" {
				now = c.new
			}
			s := compileBox(t, definition, c.documents...)
			if got := barsOn(t, s, boxOf("v1beta1"), schema.ResourceRef{}, old, now, c.uncovered...); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if k, err := s.Kind(boxOf("v1beta1")); err != nil || k.Lossy() {
				t.Errorf("the version is lossy, or does not compile: %v", err)
			}
			// If only one version has barriers, they are under its own names.
			if got := barsOn(t, s, boxOf("v1"), schema.ResourceRef{}, `{"spec":{"size":1}}`, `{"spec":{"size":2}}`, c.uncovered...); len(got) > 0 {
				t.Errorf("through v1: %q", got)
			}
		})
	}
}

// TestA2_TheNewestVersionOfAKindHasItsBarriers: built-in kinds have other names in their versions, too.
func TestA2_TheNewestVersionOfAKindHasItsBarriers(t *testing.T) {
	const kind = "HorizontalPodAutoscaler"
	v2 := gvk("autoscaling", "v2", kind)
	s := compileBuiltIn(t, barrier("autoscaling", kind, ".spec.targetCPUUtilizationPercentage", "example.com/load", "excluded: true"))
	if got := barsOn(t, s, v2, schema.ResourceRef{}, `{"spec":{}}`, `{"spec":{"metrics":[{"type":"Resource"}]}}`); !slices.Equal(got, []string{"[granular:example.com/load]"}) {
		t.Errorf("got %q", got)
	}
	for _, k := range compileBuiltIn(t).Kinds() {
		if got := k.HiddenBarriers(nil); len(got) > 0 {
			t.Errorf("%v hides %v without any document", k.GroupVersionKind, got)
		}
		// The catalogue says what a field is called in each version.
		if got := k.Unplaced(); len(got) > 0 {
			t.Errorf("%v cannot place %v without any document", k.GroupVersionKind, got)
		}
	}
}

// TestC3_OneDocumentForEveryVersionOfAKindOfKubernetes: it names the versions that have the path. A path of one version has no place in
// the other. The barrier of another document about one version holds at the path in both.
func TestC3_OneDocumentForEveryVersionOfAKindOfKubernetes(t *testing.T) {
	const kind = "HorizontalPodAutoscaler"
	guard := func(versions string, paths ...string) string {
		text := "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: autoscaling, kind: " + kind + ", versions: [" + versions + "], permissions: ["
		for _, path := range paths {
			text += "{path: " + path + ", verb: example.com/" + map[bool]string{true: "all", false: "one"}[versions == ""] + ", excluded: true}, "
		}
		return text + "]}\n"
	}
	const target, load = ".spec.scaleTargetRef", ".spec.targetCPUUtilizationPercentage"
	for name, c := range map[string]struct {
		documents []string
		want      string
	}{
		"a part of another type":                {documents: []string{guard("", target)}, want: "[]"},
		"the parent of fields with other names": {documents: []string{guard("", ".spec", ".status")}, want: "[]"},
		"a path of one version":                 {documents: []string{guard("", load)}, want: "[granular:example.com/all]"},
		"a path of one version beside another":  {documents: []string{guard("", target, load)}, want: "[granular:example.com/all]"},
		"each has its own path":                 {documents: []string{guard("v1", load), guard("v2", ".spec.metrics")}, want: "[]"},
		"the other has another verb in between": {documents: []string{guard("", target, load), guard("v1", target)}, want: "[granular:example.com/all]"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := compileBuiltIn(t, c.documents...).Kind(gvk("autoscaling", "v2", kind))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(k.HiddenBarriers(nil)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// ingressDocument publishes an old version of Ingress, with fields that have other names in v1.
const ingressDocument = `{"components":{"schemas":{"Ingress":{"type":"object",
  "x-kubernetes-group-version-kind":[{"group":"networking.k8s.io","version":"v1beta1","kind":"Ingress"}],
  "properties":{"metadata":{"$ref":"#/components/schemas/Meta"},"spec":{"type":"object","properties":{"backend":{"type":"object","properties":{"serviceName":{"type":"string"}}}}}}},
  "Meta":{"type":"object","properties":{"name":{"type":"string"}}}}}}`

// TestC3_AVersionThatIsNotServedHidesNothing. Every version that an API server publishes counts as served, even if it was not recorded.
func TestC3_AVersionThatIsNotServedHidesNothing(t *testing.T) {
	published, err := OpenAPIV3("published", []byte(ingressDocument))
	if err != nil {
		t.Fatal(err)
	}
	documents, errs := Decode("test", []byte(barrier("networking.k8s.io", "Ingress", ".spec.backend", "example.com/backend", "excluded: true")))
	noErrors(t, errs)
	for want, topologies := range map[string][]compile.Topology{"[]": nil, "[granular:example.com/backend]": {published}} {
		s := compileWith(t, documents.Append(compile.Documents{Topologies: topologies}))
		k, err := s.Kind(gvk("networking.k8s.io", "v1", "Ingress"))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(k.HiddenBarriers(nil)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestA2_AScaleNeedsWhatItsVersionCannotPlace, as every change through the version does.
func TestA2_AScaleNeedsWhatItsVersionCannotPlace(t *testing.T) {
	want := []string{"[granular:secret]"}
	definition := versions{v1: named, v1beta1: `{type: object, properties: {size: {type: integer}, count: {type: integer}}}`, metadata: vouched, top: byWebhook}.String()
	s := compileBox(t, definition, guardOf("Box", "v1", `{path: .spec.secret, verb: secret, excluded: true}`))
	ref := schema.ResourceRef{Group: "example.com", Version: "v1beta1", Resource: "boxes", Subresource: "scale"}
	if got := barsOn(t, s, gvk("autoscaling", "v1", "Scale"), ref, `{"spec":{"replicas":1}}`, `{"spec":{"replicas":2}}`); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// The endpoint is guarded even for users with its generic verb.
	k, err := s.Kind(boxOf("v1beta1"))
	if err != nil || !k.MayBarElsewhere() {
		t.Errorf("no subresource may pass a barrier: %v", err)
	}
	if got := k.Unplaced(); len(got) != 1 || got[0].Path != ".spec.secret" || got[0].Version != "v1" {
		t.Errorf("unplaced are %+v", got)
	}
}

// C1: the body of a resource has the verbs of its own kind only. What binds a Pod writes a part of it, and is no other object that the Pod becomes a part of.
func TestC1_AnObjectHasTheVerbsOfItsKindOnly(t *testing.T) {
	s, errs := Offline(nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	compared := 0
	for _, e := range endpoint.All() {
		if e.Subresource != "" && e.Subresource != "status" || e.Body.Kind == "" || e.Body == (endpoint.Kind{Kind: "Binding"}) && e.Storage != "" || e.Resource == "events" {
			continue
		}
		for _, version := range e.Versions {
			own := runtimeschema.GroupVersionKind{Group: e.Group, Version: version, Kind: e.Body.Kind}
			k, err := s.Kind(own)
			if err != nil {
				continue // The built-in kinds are those of one version of the API server, and endpoints of all.
			}
			body, err := s.KindFor(own, schema.ResourceRef{Group: e.Group, Version: version, Resource: e.Resource, Subresource: e.Subresource})
			if err != nil || body != k {
				t.Errorf("%s/%s of %s has verbs of other kinds (%v)", e.Resource, e.Subresource, own, err)
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("%d endpoints were compared", compared)
	}
}
