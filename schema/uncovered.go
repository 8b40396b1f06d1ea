package schema

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// ResourceRef is the resource of a request, as an authorizer sees it.
type ResourceRef struct {
	Group, Version, Resource, Subresource string
}

// Request returns the fields of a request without its objects, for match conditions: decoded JSON with int64 and float64 for numbers. The
// evaluation does not change them. It is called only if there is a condition. After an error, and if Request or the fields are nil, all
// conditions count as true.
type Request func() (map[string]any, error)

type uncoveredSet struct {
	source     string
	barrier    string
	verbs      VerbSet
	resources  []v1alpha1.ResourceRule
	conditions []*condition
	// declared are the conditions as the document has them.
	declared []v1alpha1.MatchCondition
	// actions are nil if the set refuses writes.
	actions []v1alpha1.ValidationAction
}

// Uncovered returns the verbs that are barriers for the request, from every UncoveredPermissionSet that refuses writes and matches any name
// of the endpoint.
// A match condition counts as true if it fails, or if the context ends. Some requests change a stored object that they do not show; they
// are matched twice, with their own operation and as an UPDATE. The error is for the log only. Callers must not change the result.
func (s *Schema) Uncovered(ctx context.Context, ref ResourceRef, request Request) (VerbSet, error) {
	return s.matching(ctx, ref, request, v1alpha1.ValidationDeny)
}

// Tried is Uncovered for the sets that have an action and do not refuse writes.
func (s *Schema) Tried(ctx context.Context, ref ResourceRef, request Request, action v1alpha1.ValidationAction) (VerbSet, error) {
	return s.matching(ctx, ref, request, action)
}

func (u *uncoveredSet) denies() bool { return len(u.actions) == 0 }

// storesStatus reports whether a write of the object may change the stored status: a write of a custom resource through a version without
// the subresource status, or through a lossy version, whose status the API server stores in place of the whole one; and the creation of a
// few built-in resources. In all other writes of the object the API server keeps the stored status, so that no change of it is seen.
func (s *Schema) storesStatus(ref ResourceRef) bool {
	if ref.Subresource != "" {
		return false
	}
	if endpoint.BuiltIn(ref.Group, ref.Resource) {
		return endpoint.StatusOnCreate(ref.Group, ref.Resource)
	}
	return s.statusStored[runtimeschema.GroupResource{Group: ref.Group, Resource: ref.Resource}]
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

// uncovered compiles the sets. A verb that guards no field stays in its set: it has no effect until a field has that verb.
func (c *compiler) uncovered() []uncoveredSet {
	var out []uncoveredSet
	for i := range c.docs.Uncovered {
		d := &c.docs.Uncovered[i]
		set := uncoveredSet{source: d.Source, barrier: SetBarrier(d), verbs: VerbSet{}, resources: d.Set.Spec.Resources, declared: d.Set.Spec.MatchConditions}
		fault := func(pointer, format string, args ...any) {
			c.report(&Error{Source: d.Source, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
		}
		if !d.Set.Spec.Denies() {
			set.actions = d.Set.Spec.ValidationActions
		}
		for j, text := range d.Set.Spec.UncoveredPermissions {
			pointer := fmt.Sprintf("/spec/uncoveredPermissions/%d", j)
			v, err := verbs.Parse(text)
			switch {
			case err != nil:
				fault(pointer, "%v", err)
			case v == verbs.MarkerVerb():
				fault(pointer, "verb %q is the marker and guards no field: use granular:* for all fields", text)
			default:
				set.verbs[v] = Extent{}
			}
		}
		for j, match := range d.Set.Spec.MatchConditions {
			compiled, err := c.condition(match.Expression)
			if err != nil {
				fault(fmt.Sprintf("/spec/matchConditions/%d/expression", j), "match condition %q: %v", match.Name, err)
				continue
			}
			set.conditions = append(set.conditions, compiled)
		}
		if len(d.Set.Spec.UncoveredPermissions) == 0 {
			fault("/spec/uncoveredPermissions", "the set is empty: name the verbs that are uncovered")
		}
		out = append(out, set)
	}
	return out
}
