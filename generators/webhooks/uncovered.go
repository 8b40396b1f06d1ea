package webhooks

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/sets"
	"github.com/fieldperm/fieldperm/verbs"
)

// Uncovered returns the webhook rules of the endpoints that can write a guarded field (W2), for Options.Uncovered. Every name of a
// resource has its own rule: an API server converts an object for a webhook (matchPolicy Equivalent) only if no rule of the webhook names
// the requested resource.
//
// A kind does not name its resource. plurals holds the resource names of custom resources. For other kinds the name is guessed in
// Kubernetes' way (meta.UnsafeGuessKindToResource), which is right for every built-in kind.
func Uncovered(s *schema.Schema, sets []sets.Document, plurals map[runtimeschema.GroupKind]string) []v1alpha1.ResourceRule {
	r := rules{}
	for _, k := range s.Kinds() {
		if k.MayBar() || k.MayBarElsewhere() {
			r.addKind(k, s, plurals)
		}
	}
	for i := range sets {
		if sets[i].Set.Spec.Denies() {
			r.addSet(&sets[i].Set.Spec, s, plurals)
		}
	}
	return r.list()
}

// Tried returns the rules for the UncoveredPermissionSets that do not refuse writes.
func Tried(s *schema.Schema, sets []sets.Document, plurals map[runtimeschema.GroupKind]string) []v1alpha1.ResourceRule {
	r := rules{}
	for i := range sets {
		if !sets[i].Set.Spec.Denies() {
			r.addSet(&sets[i].Set.Spec, s, plurals)
		}
	}
	return r.list()
}

// UncoveredKind returns only the rules for the barriers in the schemas of one kind.
func UncoveredKind(s *schema.Schema, kind runtimeschema.GroupKind, plurals map[runtimeschema.GroupKind]string) []v1alpha1.ResourceRule {
	r := rules{}
	for _, k := range s.Kinds() {
		if k.GroupKind() == kind && (k.MayBar() || k.MayBarElsewhere()) {
			r.addKind(k, s, plurals)
		}
	}
	return r.list()
}

// UncoveredSet returns only the rules for one UncoveredPermissionSet.
func UncoveredSet(s *schema.Schema, spec *v1alpha1.UncoveredPermissionSetSpec, plurals map[runtimeschema.GroupKind]string) []v1alpha1.ResourceRule {
	r := rules{}
	r.addSet(spec, s, plurals)
	return r.list()
}

// Resource returns the resource name of a kind, from plurals or by the guess that Uncovered uses.
func Resource(kind runtimeschema.GroupKind, plurals map[runtimeschema.GroupKind]string) string {
	if resource := plurals[kind]; resource != "" {
		return resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return plural.Resource
}

func (r rules) addKind(k *schema.Kind, s *schema.Schema, plurals map[runtimeschema.GroupKind]string) {
	own := false
	for _, e := range bodies() {
		// A kind may be the body of an endpoint that writes a part of another object, or that writes nothing.
		if e.GroupKind() == k.GroupKind() {
			r.add(e.Group, e.Name())
			own = true
		}
	}
	if own {
		return
	}
	resource := Resource(k.GroupKind(), plurals)
	for _, e := range endpoint.Writers(k.Group, resource) {
		// Every endpoint that writes the object may change fields that a version does not show.
		if k.MayBarElsewhere() && (e.Whole || len(e.Fields) > 0) || letsThrough(&e, s, k, bars) {
			r.add(e.Group, e.Name())
		}
	}
}

// bars reports whether a barrier of the kind's schema guards a field, a part of it, or a value that contains it.
func bars(k *schema.Kind, path string) bool {
	way := k.Way(path)
	return way[len(way)-1].MayBarWithin() || slices.ContainsFunc(way, func(n *schema.Node) bool { return slices.ContainsFunc(n.Permissions(), (*schema.Permission).MayBar) })
}

// letsThrough reports whether an endpoint can write a guarded field of a kind. guarded reports whether a field of a kind is guarded,
// contains a guarded field, or is a part of one.
func letsThrough(e *endpoint.Endpoint, s *schema.Schema, k *schema.Kind, guarded func(k *schema.Kind, path string) bool) bool {
	switch {
	case e.Storage == "":
		return false
	case e.Whole:
		return guarded(k, "")
	case isForeign(e):
		return e.Subresource == "scale" && s.HidesReplicas(e.GroupResource()) && guarded(k, "") || foreign(e, s, k, guarded)
	case e.Subresource != "" && e.ChangesOwners():
		return guarded(k, "")
	}
	for _, f := range e.Fields {
		if guarded(k, f.Stored()) {
			return true
		}
	}
	return slices.ContainsFunc(e.Refused, func(path string) bool { return guarded(k, path) })
}

// isIn reports whether a set that names named, which may be a wildcard, includes name.
func isIn(named, name string) bool { return named == "*" || named == name }

// foreign is letsThrough for an endpoint whose body is of another kind. The tree of such a body includes the guards of the object. If the
// tree is not known, the fields of the object decide.
func foreign(e *endpoint.Endpoint, s *schema.Schema, k *schema.Kind, guarded func(k *schema.Kind, path string) bool) bool {
	known := false
	for _, body := range s.Kinds() {
		if body.GroupKind() != e.GroupKind() {
			continue
		}
		known = true
		tree, err := s.KindFor(body.GroupVersionKind, schema.ResourceRef{Group: e.Group, Resource: e.Resource, Subresource: e.Subresource})
		if err != nil || len(e.Fields) == 0 && guarded(tree, "") {
			return true
		}
		if slices.ContainsFunc(e.Fields, func(f endpoint.Field) bool { return guarded(tree, f.From) }) {
			return true
		}
	}
	return !known && slices.ContainsFunc(e.Fields, func(f endpoint.Field) bool {
		return k == nil || f.To == endpoint.SpecReplicas || guarded(k, f.Stored())
	})
}

// bodies returns the endpoints whose body is not an object that is stored unchanged.
func bodies() []endpoint.Endpoint {
	return slices.DeleteFunc(slices.Concat(endpoint.All(), endpoint.Custom()), func(e endpoint.Endpoint) bool {
		return e.Whole || !isForeign(&e) || !e.Creates() && !e.Updates()
	})
}

// isForeign reports whether the body is of another kind than the resource.
func isForeign(e *endpoint.Endpoint) bool {
	if e.Whole || e.Body.Kind == "" || e.Body.Kind == "*" {
		return false
	}
	own, ok := endpoint.Lookup(e.Group, e.Resource, "")
	return !ok || !own.Whole || own.Body != e.Body
}

// addSet adds rules for the resources of an UncoveredPermissionSet, under all their names. In a set, a resource includes its
// subresources. Only subresources that can write a field with one of the verbs get a rule. granular:* guards every body.
func (r rules) addSet(spec *v1alpha1.UncoveredPermissionSetSpec, s *schema.Schema, plurals map[runtimeschema.GroupKind]string) {
	resources := s.SetResources(spec)
	if len(resources) == 0 {
		resources = []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}
	}
	w := newWriters(s, spec.UncoveredPermissions, plurals)
	for _, rule := range resources {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				r.add(group, resource)
				w.add(r, group, resource)
			}
		}
	}
}

// writers finds the endpoints that write fields with certain verbs.
type writers struct {
	schema *schema.Schema
	// every means that all fields count.
	every bool
	verbs []string
	kinds map[runtimeschema.GroupResource][]*schema.Kind
	// bearers caches which places of trees have one of the verbs.
	bearers map[bearer]bool
}

type bearer struct {
	root *schema.Node
	path string
}

func newWriters(s *schema.Schema, uncovered []string, plurals map[runtimeschema.GroupKind]string) *writers {
	w := &writers{
		schema: s, every: slices.Contains(uncovered, verbs.All().String()), verbs: uncovered,
		kinds: map[runtimeschema.GroupResource][]*schema.Kind{}, bearers: map[bearer]bool{},
	}
	for _, k := range s.Kinds() {
		at := runtimeschema.GroupResource{Group: k.Group, Resource: Resource(k.GroupKind(), plurals)}
		w.kinds[at] = append(w.kinds[at], k)
	}
	return w
}

// add adds rules for the other endpoints that write a resource of a set. The name may be a wildcard.
func (w *writers) add(r rules, group, name string) {
	resource, subresource, isSubresource := strings.Cut(name, "/")
	if isSubresource {
		for _, alias := range endpoint.Aliases(group, resource, subresource) {
			r.add(alias.Group, alias.Name())
		}
		// A write of the object, or of its other parts, can change the owners of the fields of this subresource.
		if e, known := endpoint.Lookup(group, resource, subresource); known && !e.Updates() {
			return
		}
		if subresource == "status" || resource != "*" {
			r.add(group, resource)
		}
		for _, e := range endpoint.All() {
			if at, known := endpoint.Lookup(e.Group, e.Resource, subresource); !known || !at.Updates() || !isIn(group, e.Group) || !isIn(resource, e.Resource) {
				continue
			}
			isObject := e.Subresource == ""
			if isObject && resource == "*" && subresource != "status" || !isObject && e.ChangesOwners() {
				r.add(e.Group, e.Name())
			}
		}
		return
	}
	if w.every {
		r.add(group, resource+"/*")
	}
	for at := range w.resources(group, resource) {
		for _, e := range slices.Concat(endpoint.Writers(at.Group, at.Resource), requests(at)) {
			if !w.every && !w.writes(at, &e) {
				continue
			}
			switch {
			case e.Resource != at.Resource || e.Group != at.Group:
				r.add(e.Group, e.Name())
			case e.Subresource != "" && !w.every:
				// The rule uses the terms of the set: a wildcard stays a wildcard.
				r.add(group, resource+"/"+e.Subresource)
			}
		}
	}
}

// requests returns the subresources of a resource that do not store their body. The fields of the body have verbs nevertheless.
func requests(at runtimeschema.GroupResource) []endpoint.Endpoint {
	return slices.DeleteFunc(bodies(), func(e endpoint.Endpoint) bool {
		return e.GroupResource() != at || e.Subresource == "" || len(e.Fields) > 0
	})
}

// resources returns the resources that a name of a set can mean: the known ones and the named one itself. A wildcard also means any
// custom resource.
func (w *writers) resources(group, resource string) map[runtimeschema.GroupResource]bool {
	out := map[runtimeschema.GroupResource]bool{{Group: group, Resource: resource}: true}
	matches := func(g, r string) bool { return (group == "*" || group == g) && (resource == "*" || resource == r) }
	for at := range w.kinds {
		if matches(at.Group, at.Resource) {
			out[at] = true
		}
	}
	for _, e := range endpoint.All() {
		if e.Subresource == "" && e.Whole && matches(e.Group, e.Resource) {
			out[e.GroupResource()] = true
		}
	}
	return out
}

// writes reports whether an endpoint writes a field with one of the verbs. If the kind of a resource is not known, any of its fields may
// have one.
func (w *writers) writes(at runtimeschema.GroupResource, e *endpoint.Endpoint) bool {
	kinds := w.kinds[at]
	switch {
	case e.Whole:
		return true
	case len(kinds) == 0 && isForeign(e):
		return foreign(e, w.schema, nil, w.bears)
	case len(kinds) == 0:
		return len(e.Fields)+len(e.Refused) > 0
	case len(e.Fields) == 0 && isForeign(e):
		// A body that is not stored may have verbs on its fields.
		return foreign(e, w.schema, kinds[0], w.bears)
	}
	return slices.ContainsFunc(kinds, func(k *schema.Kind) bool { return letsThrough(e, w.schema, k, w.bears) })
}

// bears reports whether a field of a kind, a part of it, or a value that contains it has one of the verbs.
func (w *writers) bears(k *schema.Kind, path string) bool {
	at := bearer{k.Root, path}
	found, known := w.bearers[at]
	if !known {
		look := func(n *schema.Node) {
			found = found || slices.ContainsFunc(n.Permissions(), func(p *schema.Permission) bool { return named(w.verbs, p.Base()) })
		}
		way := k.Way(path)
		last := len(way) - 1
		for _, n := range way[:last] {
			look(n)
		}
		way[last].Each(look)
		w.bearers[at] = found
	}
	return found
}

// named reports whether one of the verbs, with or without a parameter, has the name of v.
func named(uncovered []string, v verbs.Verb) bool {
	return slices.ContainsFunc(uncovered, func(text string) bool {
		u, err := verbs.Parse(text)
		return err == nil && u.Name() == v.Name()
	})
}
