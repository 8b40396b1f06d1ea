package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/verbs"
)

// A set that names Pods also holds for what Pods are made from. Otherwise a user could have a controller create the Pod that the set does not let
// the user create. The barrier is at the verb that the same field has there: granular:label(x) of a Pod is granular:templateLabel(x) of a template.

// templated is a kind with fields that become parts of Pods.
type templated struct {
	resource runtimeschema.GroupResource
	kind     runtimeschema.GroupVersionKind
}

// TemplateBarrier is what an UncoveredPermissionSet that names Pods makes a barrier in another resource, because Pods are made from it.
type TemplateBarrier struct {
	runtimeschema.GroupResource
	// Verbs are sorted.
	Verbs []string
}

// OnTemplates returns the barriers of a set in the resources that Pods are made from, by resource. There are none unless the set names
// Pods. Verbs that the set itself has for the resource are left out.
func (s *Schema) OnTemplates(spec *v1alpha1.UncoveredPermissionSetSpec) []TemplateBarrier {
	set := uncoveredSet{resources: spec.Resources}
	pod := s.kinds[podKind]
	if pod == nil || !set.covers(ResourceRef{Version: podKind.Version, Resource: "pods"}) {
		return nil
	}
	var asked []verbs.Verb
	for _, text := range spec.UncoveredPermissions {
		if v, err := verbs.Parse(text); err == nil {
			asked = append(asked, v)
		}
	}
	places := placesOf(asked)
	asked = slices.DeleteFunc(asked, func(v verbs.Verb) bool { return !places[v.WithoutParameter()].has(pod.Root) })
	var out []TemplateBarrier
	for _, t := range s.templated {
		k := s.kinds[t.kind]
		if k == nil {
			continue
		}
		named := set.covers(ResourceRef{Group: t.resource.Group, Version: t.kind.Version, Resource: t.resource.Resource})
		found := map[verbs.Verb]bool{}
		for _, v := range asked {
			w := &templateWalk{verb: v, named: named, places: places[v.WithoutParameter()], seen: map[pairing]bool{}, found: found}
			w.enter(pod.Root, k.Root, above{})
		}
		at := slices.IndexFunc(out, func(b TemplateBarrier) bool { return b.GroupResource == t.resource })
		if at < 0 && len(found) > 0 {
			at, out = len(out), append(out, TemplateBarrier{GroupResource: t.resource})
		}
		for v := range found {
			if base := v.WithoutParameter(); v != base && found[base] {
				continue
			}
			if text := v.String(); !slices.Contains(out[at].Verbs, text) {
				out[at].Verbs = append(out[at].Verbs, text)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].Verbs)
	}
	return out
}

// onTemplates returns the sets that hold a set about Pods for what Pods are made from.
func (s *Schema) onTemplates(set *uncoveredSet, spec *v1alpha1.UncoveredPermissionSetSpec) []uncoveredSet {
	var out []uncoveredSet
	for _, b := range s.OnTemplates(spec) {
		t, known := s.landscape.target(b.GroupResource, "")
		if !known {
			continue
		}
		derived := uncoveredSet{
			source: set.source, barrier: set.barrier, verbs: VerbSet{}, conditions: set.conditions, declared: set.declared, actions: set.actions, targets: []*target{t},
			resources: []v1alpha1.ResourceRule{{APIGroups: []string{b.Group}, Resources: []string{b.Resource}}},
		}
		for _, text := range b.Verbs {
			if v, err := verbs.Parse(text); err == nil {
				derived.verbs[v] = Extent{}
			}
		}
		out = append(out, derived)
	}
	return out
}
