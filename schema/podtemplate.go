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
	var out []TemplateBarrier
	for _, t := range s.templated {
		k := s.kinds[t.kind]
		if k == nil {
			continue
		}
		w := &templateWalk{
			seen: map[pairing]bool{}, found: map[verbs.Verb]bool{},
			named: set.covers(ResourceRef{Group: t.resource.Group, Version: t.kind.Version, Resource: t.resource.Resource}),
		}
		for _, text := range spec.UncoveredPermissions {
			if v, err := verbs.Parse(text); err == nil && v != verbs.MarkerVerb() {
				w.verbs = append(w.verbs, v)
			}
		}
		w.enter(pod.Root, k.Root, nil)
		at := slices.IndexFunc(out, func(b TemplateBarrier) bool { return b.GroupResource == t.resource })
		if at < 0 && len(w.found) > 0 {
			at, out = len(out), append(out, TemplateBarrier{GroupResource: t.resource})
		}
		for v := range w.found {
			if base := v.WithoutParameter(); v != base && w.found[base] {
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

// templateWalk finds the verbs of a template for the verbs of Pods.
type templateWalk struct {
	verbs []verbs.Verb
	// named means that the set names the resource too, so that a verb which the template has, or a field above it, is a barrier already.
	named bool
	seen  map[pairing]bool
	found map[verbs.Verb]bool
}

// pairing is a field of Pods, the field that becomes it, and the nearest verb above that.
type pairing struct {
	pod, template *Node
	above         *Permission
}

// chain are the permissions above a node, from general to specific.
type chain []*Permission

func (c chain) last() *Permission {
	if len(c) == 0 {
		return nil
	}
	return c[len(c)-1]
}

func (c chain) with(n *Node) chain { return slices.Concat(c, n.permissions) }

// enter finds the fields that become parts of Pods at and below a node.
func (w *templateWalk) enter(pod, n *Node, above chain) {
	at := pairing{nil, n, above.last()}
	if !n.makesPods || w.seen[at] {
		return
	}
	w.seen[at] = true
	if n.pod != NoPod {
		// A barrier at the root of Pods is a barrier on all parts of them.
		w.compare(pod.permissions, n, above, "")
		part := pod.named(string(n.pod))
		if n.pod == PodMetadata {
			w.compare(part.permissions, n, above, "")
			for _, name := range handedOn {
				if n.mayHave(name) {
					w.pair(part.named(name), n.named(name), above.with(n), "")
				}
			}
		} else {
			w.pair(part, n, above, "")
		}
	}
	for _, child := range n.Children() {
		w.enter(pod, child, above.with(n))
	}
}

// pair compares a field of Pods, and everything below it, with the field that becomes it. key is the key of the map that the pair stands
// for, "" for none.
func (w *templateWalk) pair(pod, template *Node, above chain, key string) {
	at := pairing{pod, template, above.last()}
	if pod == unknown || w.seen[at] {
		return
	}
	w.seen[at] = true
	w.compare(pod.permissions, template, above, key)
	above = above.with(template)
	if pod.list != nil {
		w.pair(pod.items(), template.items(), above, "")
	}
	if pod.mapping == nil {
		return
	}
	for _, name := range singled([]*Node{pod, template}) {
		key := ""
		if !pod.mapping.IsField(name) {
			key = name
		}
		if template.mayHave(name) {
			w.pair(pod.named(name), template.named(name), above, key)
		}
	}
	if pod.mapping.value != nil {
		w.pair(pod.values(), template.values(), above, "")
	}
}

// mayHave reports whether an object at the node can have a field or a key. A template need not have all fields of a Pod.
func (n *Node) mayHave(name string) bool {
	return n.mapping != nil && (n.mapping.value != nil || n.mapping.IsField(name))
}

// compare adds the verbs of a field of a template for the barriers among the permissions of the same field of Pods.
func (w *templateWalk) compare(pod []*Permission, template *Node, above chain, key string) {
	for _, v := range w.verbs {
		is := func(p *Permission) bool { return p.MayBe(v) }
		if !slices.ContainsFunc(pod, is) || w.named && slices.ContainsFunc(above.with(template), is) {
			continue
		}
		w.found[counterpart(v, template, above, key)] = true
	}
}

// counterpart returns the verb of a field of a template for a barrier on the same field of Pods: the same verb, or the most specific verb
// of the field, or the nearest verb above.
func counterpart(v verbs.Verb, template *Node, above chain, key string) verbs.Verb {
	own := chain(template.permissions)
	if slices.ContainsFunc(own, func(p *Permission) bool { return p.MayBe(v) }) {
		return v
	}
	p := own.last()
	if p == nil {
		if p = above.last(); p == nil {
			return verbs.All()
		}
		return p.verb
	}
	value, parameterized := v.Parameter()
	if !parameterized {
		value = key
	}
	if value != "" && p.parameter != "" {
		if out, ok := p.Parameterized(func(string) (string, bool) { return value, true }); ok {
			return out
		}
	}
	return p.verb
}

// onTemplates returns the sets that hold a set about Pods for what Pods are made from. A condition on the object is about a Pod, which
// the request does not have, so it counts as true.
func (s *Schema) onTemplates(set *uncoveredSet, spec *v1alpha1.UncoveredPermissionSetSpec) []uncoveredSet {
	var out []uncoveredSet
	for _, b := range s.OnTemplates(spec) {
		t, known := s.landscape.target(b.GroupResource, "")
		if !known {
			continue
		}
		named := set.covers(ResourceRef{Group: b.Group, Resource: b.Resource})
		derived := uncoveredSet{
			source: set.source, barrier: set.barrier, verbs: VerbSet{}, declared: set.declared, actions: set.actions, targets: []*target{t},
			resources: []v1alpha1.ResourceRule{{APIGroups: []string{b.Group}, Resources: []string{b.Resource}}},
		}
		for _, text := range b.Verbs {
			if v, err := verbs.Parse(text); err == nil {
				derived.verbs[v] = Extent{}
			}
		}
		for i := range set.conditions {
			if named || set.conditions[i].reads == readsRequest {
				derived.conditions = append(derived.conditions, set.conditions[i])
			}
		}
		out = append(out, derived)
	}
	return out
}

// unreadTemplates returns the resources where a set about Pods holds because Pods are made from them, and where its conditions on the
// object are not evaluated.
func (s *Schema) unreadTemplates(set *uncoveredSet) []string {
	var out []string
	for i := range s.uncovered {
		if derived := &s.uncovered[i]; derived.source == set.source && len(derived.conditions) < len(set.conditions) {
			out = append(out, derived.targets[0].String())
		}
	}
	return out
}
