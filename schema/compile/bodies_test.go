package compile

import (
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

const scaleTypes = `types:
- name: scale
  map: {fields: [{name: spec, type: {namedType: scaleSpec}}]}
- name: scaleSpec
  map: {fields: [{name: replicas, type: {scalar: numeric}}]}
`

// scaleTopology has Scales alone.
func scaleTopology(t *testing.T) Topology {
	t.Helper()
	parser, err := typed.NewParser(scaleTypes)
	if err != nil {
		t.Fatal(err)
	}
	return Topology{Source: "scale", Types: &parser.Schema, Kinds: map[runtimeschema.GroupVersionKind]string{schema.ScaleKind(): "scale"}}
}

// TestC2_ABarrierOnReplicasHoldsOnScale proves that a user cannot bypass the barrier through the scale subresource.
func TestC2_ABarrierOnReplicasHoldsOnScale(t *testing.T) {
	lock := v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "size", Excluded: true}
	bad := v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "Size", Excluded: true}
	compile := func(p v1alpha1.FieldPermission, plurals map[runtimeschema.GroupVersionKind]string) *schema.Schema {
		docs := things(t, document("f.yaml", "A", RankAdministrator, p))
		docs.Topologies[0].Plurals = plurals
		docs.Topologies = append(docs.Topologies, scaleTopology(t))
		s, _ := Compile(docs)
		return s
	}
	verbsOf := func(s *schema.Schema, resource string) string {
		k, err := s.KindFor(schema.ScaleKind(), schema.ResourceRef{Group: "example.com", Resource: resource, Subresource: "scale"})
		if err != nil {
			return err.Error()
		}
		var out []string
		bars := false
		for _, p := range k.Root.Map().Child("spec").Map().Child("replicas").Permissions() {
			out, bars = append(out, p.Base().String()), bars || p.MayBar()
		}
		if k.MayBar() != bars || k.Root.MayBarWithin() != bars {
			t.Errorf("%q: the kind may bar: %v, below its root: %v; want %v", resource, k.MayBar(), k.Root.MayBarWithin(), bars)
		}
		return strings.Join(out, " ")
	}
	if got := verbsOf(compile(lock, nil), "as"); got != "granular:size" {
		t.Errorf("guessed plural: %q", got)
	}
	if got := verbsOf(compile(lock, map[runtimeschema.GroupVersionKind]string{kindOf("A"): "aces"}), "aces"); got != "granular:size" {
		t.Errorf("named plural: %q", got)
	}
	plain := v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "size"}
	if got := verbsOf(compile(plain, nil), "as"); got != "granular:size" {
		t.Errorf("a verb that an UncoveredPermissionSet may name: %q", got)
	}
	if got := verbsOf(compile(lock, nil), "bs"); got != "" {
		t.Errorf("another resource: %q", got)
	}
	if got := verbsOf(compile(bad, nil), "as"); !strings.Contains(got, "not lowerCamelCase") {
		t.Errorf("a parent that does not compile: %q", got)
	}
}

// TestC2_ABarrierOnTheScaleHoldsBesideTheParents: an administrator's entry for every Scale also holds for a resource that has a Scale of
// its own.
func TestC2_ABarrierOnTheScaleHoldsBesideTheParents(t *testing.T) {
	scale := document("s.yaml", "", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec", Verb: "size", Excluded: true})
	k := scaleOf(t, scale, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "width"})
	permissions := k.Root.Map().Child("spec").Map().Child("replicas").Permissions()
	if len(permissions) != 2 || permissions[0].Base().Name() != "size" || !permissions[0].Bars(t.Context(), nil, int64(1)) || permissions[1].MayBar() {
		t.Errorf("permissions %v", permissions)
	}
	if spec := k.Root.Map().Child("spec"); !k.MayBar() || !k.Root.MayBarWithin() || !spec.MayBarWithin() || spec.Map().Child("replicas").MayBarWithin() {
		t.Error("the barrier is not known to be below the root and the spec")
	}
}

// scaleOf is the Scale of a kind with the permissions, beside a document about every Scale.
func scaleOf(t *testing.T, scale PermissionDocument, object ...v1alpha1.FieldPermission) *schema.Kind {
	t.Helper()
	scale.Group, scale.Kind = schema.ScaleKind().Group, schema.ScaleKind().Kind
	docs := things(t, scale, document("f.yaml", "A", RankAdministrator, object...))
	docs.Topologies = append(docs.Topologies, scaleTopology(t))
	s, errs := Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	k, err := s.KindFor(schema.ScaleKind(), schema.ResourceRef{Group: "example.com", Resource: "as", Subresource: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// scaleWithItsOwnVerb is the Scale of a kind with the permissions. An administrator gave every Scale the verbs "specification", and
// "scale" for its replicas.
func scaleWithItsOwnVerb(t *testing.T, object ...v1alpha1.FieldPermission) *schema.Kind {
	t.Helper()
	scale := document("s.yaml", "", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec", Verb: "specification"}, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale"})
	return scaleOf(t, scale, object...)
}

// TestC2_AVerbOfTheScaleAlonePassesNoBarrierAboveReplicas: the Scale's own verb for its replicas does not pass a barrier of the object,
// whose replicas have another verb.
func TestC2_AVerbOfTheScaleAlonePassesNoBarrierAboveReplicas(t *testing.T) {
	k := scaleWithItsOwnVerb(t, v1alpha1.FieldPermission{Path: ".spec", Verb: "locked", Excluded: true}, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "size"})
	var after []string
	for _, p := range k.Root.Map().Child("spec").Map().Child("replicas").Permissions() {
		if p.MayBar() {
			after = nil
		}
		after = append(after, p.Base().String())
	}
	if got := strings.Join(after, " "); got != "granular:locked granular:size" {
		t.Errorf("the barrier is passed by %q", got)
	}
}

// TestC2_AVerbAboveTheReplicasHoldsThroughTheScale: the verbs above the replicas in the object also count in the Scale, for grants and
// for sets, although the Scale's own field has a verb of that name.
func TestC2_AVerbAboveTheReplicasHoldsThroughTheScale(t *testing.T) {
	k := scaleWithItsOwnVerb(t, v1alpha1.FieldPermission{Path: ".spec", Verb: "specification"}, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "size"})
	var chain []string
	for _, n := range []*schema.Node{k.Root.Map().Child("spec"), k.Root.Map().Child("spec").Map().Child("replicas")} {
		for _, p := range n.Permissions() {
			chain = append(chain, p.Base().Name())
		}
	}
	if got := strings.Join(chain, " "); got != "scale specification size" {
		t.Errorf("the chain is %q", got)
	}
}
