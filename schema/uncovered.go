package schema

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// ResourceRef is the resource of a request, as an authorizer sees it.
type ResourceRef struct {
	Group, Version, Resource, Subresource string
}

// Request describes a write for the matching of sets.
type Request struct {
	// Kind is the kind of the body.
	Kind runtimeschema.GroupVersionKind
	// SentAs is the kind in which the client sent the body, nil if it is not known.
	SentAs *runtimeschema.GroupVersionKind
	// Variables returns the input of match conditions. If it returns an error, all conditions count as true. It is called only if a set
	// has conditions. nil means that there is no input.
	Variables func() (Variables, error)
}

// Variables are the request, the object and the old object for match conditions, as decoded JSON with int64 and float64 for numbers. The
// evaluation does not change them.
type Variables struct {
	Request           map[string]any
	Object, OldObject any
}

// input returns the variables by the names that conditions use.
func (r *Request) input() (map[string]any, error) {
	if r.Variables == nil {
		return map[string]any{}, nil
	}
	v, err := r.Variables()
	if err != nil {
		return map[string]any{}, err
	}
	if v.Request == nil {
		v.Request = map[string]any{}
	}
	return map[string]any{requestVariable: v.Request, objectVariable: v.Object, oldObjectVariable: v.OldObject}, nil
}

type uncoveredSet struct {
	source     string
	barrier    string
	verbs      VerbSet
	resources  []v1alpha1.ResourceRule
	conditions []condition
	// declared are the conditions as the document has them.
	declared []v1alpha1.MatchCondition
	// actions are nil if the set refuses writes.
	actions []v1alpha1.ValidationAction
	// targets are the known resources that the set names.
	targets []*target
	borne   []Borne
}

// Uncovered returns the verbs that are barriers for the request, from every UncoveredPermissionSet that refuses writes and matches any name
// of the endpoint.
// A match condition counts as true if it fails, if the context ends, or if it reads an object that the request does not show. Some
// requests change a stored object that they do not show; they are matched twice, with their own operation and as an UPDATE. The error is
// for the log only.
func (s *Schema) Uncovered(ctx context.Context, ref ResourceRef, request Request) (VerbSet, error) {
	return s.matching(ctx, ref, request, func(set *uncoveredSet) bool { return set.denies() })
}

// Tried is Uncovered for the sets that have an action and do not refuse writes.
func (s *Schema) Tried(ctx context.Context, ref ResourceRef, request Request, action v1alpha1.ValidationAction) (VerbSet, error) {
	return s.matching(ctx, ref, request, func(set *uncoveredSet) bool { return !set.denies() && slices.Contains(set.actions, action) })
}

func (u *uncoveredSet) denies() bool { return len(u.actions) == 0 }

// matching returns the verbs of the sets that match a request and for which counts is true.
func (s *Schema) matching(ctx context.Context, ref ResourceRef, request Request, counts func(*uncoveredSet) bool) (VerbSet, error) {
	if len(s.uncovered) == 0 {
		return nil, nil
	}
	var out VerbSet
	var input map[string]any
	var errs []error
	hold := func(set *uncoveredSet, input map[string]any, to Extent) {
		extent, matches, err := set.matches(ctx, input, s.shown(set, ref, &request))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", set.source, err))
		}
		if !matches {
			return
		}
		// A condition that is false for the object takes the values in the status out, too.
		to.StatusValues = to.StatusValues && !extent.OwnersOnly
		extent.StatusOnly, extent.OwnersOnly, extent.StatusValues = to.StatusOnly, extent.OwnersOnly || to.OwnersOnly, to.StatusValues
		if out == nil {
			out = VerbSet{}
		}
		for v := range set.verbs {
			out.Add(v, extent)
		}
	}
	unseen := changesUnseen(ref)
	for i := range s.uncovered {
		set := &s.uncovered[i]
		if !counts(set) {
			continue
		}
		covers, parts := set.coversAny(ref), set.parts(ref)
		if !covers && len(parts) == 0 {
			continue
		}
		if len(set.conditions) > 0 && input == nil {
			var err error
			// Without input every condition fails and counts as true, so every set holds.
			if input, err = request.input(); err != nil {
				errs = append(errs, err)
			}
		}
		if covers {
			hold(set, input, Extent{})
		}
		if covers && unseen && len(set.conditions) > 0 {
			hold(set, asUpdate(input), Extent{})
		}
		if covers && len(set.conditions) == 0 {
			continue
		}
		for _, part := range parts {
			hold(set, at(input, part), Extent{StatusOnly: part == status, OwnersOnly: part != status, StatusValues: part == status && s.storesStatus(ref)})
		}
	}
	return out, utilerrors.NewAggregate(errs)
}

// storesStatus reports whether a write of the object may change the stored status: a write of a custom resource through a version without
// the subresource status, or through a lossy version, whose status the API server stores in place of the whole one; and the creation of a
// few built-in resources. There are sets. In all other writes of the object the API server keeps the stored status, so that no change of it is seen.
func (s *Schema) storesStatus(ref ResourceRef) bool {
	if ref.Subresource != "" {
		return false
	}
	if endpoint.BuiltIn(ref.Group, ref.Resource) {
		return endpoint.StatusOnCreate(ref.Group, ref.Resource)
	}
	at := runtimeschema.GroupResource{Group: ref.Group, Resource: ref.Resource}
	return s.landscape.statusInside[at] || slices.ContainsFunc(s.landscape.kinds[at], (*Kind).Lossy)
}

// at returns the input of conditions for the same request at a subresource, because a write of the object can also change owners of what
// the subresource writes.
func at(input map[string]any, subresource string) map[string]any {
	return withRequest(input, map[string]any{"subResource": subresource, "requestSubResource": subresource})
}

// asUpdate returns the input of conditions for a request that is CREATE to admission and changes a stored object.
func asUpdate(input map[string]any) map[string]any {
	return withRequest(input, map[string]any{"operation": "UPDATE"})
}

// withRequest returns the input of conditions with other fields of the request.
func withRequest(input, fields map[string]any) map[string]any {
	request, ok := input[requestVariable].(map[string]any)
	if !ok {
		return input
	}
	out := maps.Clone(input)
	request = maps.Clone(request)
	maps.Copy(request, fields)
	out[requestVariable] = request
	return out
}

// coversAny reports whether the set covers the endpoint under any of its names.
func (u *uncoveredSet) coversAny(ref ResourceRef) bool {
	return slices.ContainsFunc(namesOf(ref), u.covers)
}

const status = "status"

// parts returns the other subresources that the set covers and whose fields the endpoint's object has. A write of the object, or of a
// part of it in the object's kind, can change the owners of such fields. Only for the status does an API server record which owners
// belong to it.
func (u *uncoveredSet) parts(ref ResourceRef) []string {
	if ref.Subresource != "" {
		if e, known := endpoint.Lookup(ref.Group, ref.Resource, ref.Subresource); !known || !e.ChangesOwners() {
			return nil
		}
	}
	var out []string
	for _, name := range namesOf(ref) {
		for r := range u.named(name.Group) {
			resource, part, _ := strings.Cut(r, "/")
			if part == "" || resource != "*" && resource != name.Resource || slices.Contains(out, part) || part == ref.Subresource {
				continue
			}
			// A subresource that only creates objects has no owners there.
			if e, known := endpoint.Lookup(name.Group, name.Resource, part); !known || e.Updates() {
				out = append(out, part)
			}
		}
	}
	ref.Subresource = status
	if u.coversAny(ref) && !slices.Contains(out, status) {
		out = append(out, status)
	}
	return out
}

func (u *uncoveredSet) covers(ref ResourceRef) bool {
	for r := range u.named(ref.Group) {
		if r == "*" || r == ref.Resource || ref.Subresource != "" && (r == ref.name() || r == "*/"+ref.Subresource) {
			return true
		}
	}
	return len(u.resources) == 0
}

// named returns the resource names of the set in a group.
func (u *uncoveredSet) named(group string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, rule := range u.resources {
			if !contains(rule.APIGroups, group) {
				continue
			}
			for _, r := range rule.Resources {
				// The suffix is a fault in the set, which must not make the barrier weaker.
				if !yield(strings.TrimSuffix(r, "/*")) {
					return
				}
			}
		}
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == "*" || n == name {
			return true
		}
	}
	return false
}

// uncovered compiles the sets, and checks that their verbs guard a field of their resources. A verb that guards no field stays in the
// set: it has no effect until a field has that verb.
func (c *compiler) uncovered(s *Schema) []uncoveredSet {
	if len(c.docs.Uncovered) == 0 {
		return nil
	}
	var out []uncoveredSet
	for i := range c.docs.Uncovered {
		d := &c.docs.Uncovered[i]
		set := uncoveredSet{source: d.Source, barrier: SetBarrier(d), verbs: VerbSet{}, resources: d.Set.Spec.Resources, declared: d.Set.Spec.MatchConditions}
		if !d.Set.Spec.Denies() {
			set.actions = d.Set.Spec.ValidationActions
		}
		b := &bearing{landscape: s.landscape, c: c, source: d.Source}
		var pointers []string
		for j, text := range d.Set.Spec.UncoveredPermissions {
			pointer := fmt.Sprintf("/spec/uncoveredPermissions/%d", j)
			v, err := verbs.Parse(text)
			switch {
			case err != nil:
				b.report(false, pointer, "%v", err)
			case v == verbs.MarkerVerb():
				b.report(false, pointer, "verb %q is the marker and guards no field: use granular:* for all fields", text)
			default:
				set.verbs[v] = Extent{}
				b.verbs, pointers = append(b.verbs, v), append(pointers, pointer)
			}
		}
		b.check(&d.Set.Spec, pointers)
		set.targets = b.targets
		for _, t := range b.targets {
			for _, v := range b.verbs {
				if b.fit(t, v) == fits {
					set.borne = append(set.borne, Borne{d.Source, t.String(), v.String()})
				}
			}
		}
		for j, condition := range d.Set.Spec.MatchConditions {
			compiled, err := newCondition(condition.Name, condition.Expression)
			if err != nil {
				b.report(false, fmt.Sprintf("/spec/matchConditions/%d/expression", j), "match condition %q: %v", condition.Name, err)
				continue
			}
			set.conditions = append(set.conditions, compiled)
		}
		if len(d.Set.Spec.UncoveredPermissions) == 0 {
			b.report(false, "/spec/uncoveredPermissions", "the set is empty: name the verbs that are uncovered")
		}
		out = append(append(out, set), s.onTemplates(&set, &d.Set.Spec)...)
	}
	return out
}
