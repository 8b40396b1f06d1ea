package sets

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// Document is one UncoveredPermissionSet.
type Document struct {
	Source string
	Set    v1alpha1.UncoveredPermissionSet
}

// Sets are the UncoveredPermissionSets of a compile. It implements schema.Sets. Nothing in it changes but what it remembers, so goroutines may
// share it.
type Sets struct {
	all []set
	// statusStored are the resources of definitions whose objects store their status: see storesStatus.
	statusStored map[runtimeschema.GroupResource]bool
	// applicable are the sets by the endpoints for whose requests they may hold.
	applicable applicable
}

// Compile compiles sets. A verb that guards no field stays in its set: it has no effect until a field has that verb. statusStored are the resources
// of definitions in which a write of the object may change the stored status: a version lacks the subresource status, or is lossy. containers are
// the resources that contain each fragment. The errors are *schema.Error. A set with an error holds with what is right in it.
func Compile(documents []Document, containers map[string][]v1alpha1.ResourceRule, statusStored map[runtimeschema.GroupResource]bool) (*Sets, []error) {
	out := &Sets{statusStored: statusStored}
	var errs []error
	known := map[string]*condition{}
	for i := range documents {
		d := &documents[i]
		one := set{source: d.Source, verbs: schema.VerbSet{}, resources: schema.SetResources(&d.Set.Spec, containers), declared: d.Set.Spec.MatchConditions}
		fault := func(pointer, format string, args ...any) {
			errs = append(errs, &schema.Error{Source: d.Source, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
		}
		if !d.Set.Spec.Denies() {
			one.actions = d.Set.Spec.ValidationActions
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
				one.verbs[v] = schema.Extent{}
			}
		}
		for j, match := range d.Set.Spec.MatchConditions {
			compiled, err := known[match.Expression], error(nil)
			if compiled == nil { // Many sets may have the same condition.
				compiled, err = newCondition(match.Expression)
			}
			if err != nil {
				fault(fmt.Sprintf("/spec/matchConditions/%d/expression", j), "match condition %q: %v", match.Name, err)
				continue
			}
			known[match.Expression] = compiled
			one.conditions = append(one.conditions, compiled)
		}
		if len(d.Set.Spec.UncoveredPermissions) == 0 {
			fault("/spec/uncoveredPermissions", "the set is empty: name the verbs that are uncovered")
		}
		out.all = append(out.all, one)
	}
	return out, errs
}

// Verbs returns the verbs of all sets that cover an endpoint under any of its names, by source and verb. It evaluates no condition. Callers must not
// change the slices of the result.
func (s *Sets) Verbs(ref schema.ResourceRef) []schema.SetVerb {
	var out []schema.SetVerb
	for i := range s.all {
		one := &s.all[i]
		if !one.coversAny(ref) {
			continue
		}
		for v := range one.verbs {
			out = append(out, schema.SetVerb{Source: one.source, Verb: v, Actions: one.actions, Conditions: one.declared})
		}
	}
	slices.SortFunc(out, func(a, b schema.SetVerb) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Verb.String(), b.Verb.String()))
	})
	return out
}

// set is one UncoveredPermissionSet.
type set struct {
	source     string
	verbs      schema.VerbSet
	resources  []v1alpha1.ResourceRule
	conditions []*condition
	// declared are the conditions as the document has them.
	declared []v1alpha1.MatchCondition
	// actions are nil if the set refuses writes.
	actions []v1alpha1.ValidationAction
}

func (u *set) denies() bool { return len(u.actions) == 0 }

// storesStatus reports whether a write of the object may change the stored status: a write of a custom resource through a version without
// the subresource status, or through a lossy version, whose status the API server stores in place of the whole one; and the creation of a
// few built-in resources. In all other writes of the object the API server keeps the stored status, so that no change of it is seen.
func (s *Sets) storesStatus(ref schema.ResourceRef) bool {
	if ref.Subresource != "" {
		return false
	}
	if endpoint.BuiltIn(ref.Group, ref.Resource) {
		return endpoint.StatusOnCreate(ref.Group, ref.Resource)
	}
	return s.statusStored[runtimeschema.GroupResource{Group: ref.Group, Resource: ref.Resource}]
}

// coversAny reports whether the set covers the endpoint under any of its names.
func (u *set) coversAny(ref schema.ResourceRef) bool {
	return slices.ContainsFunc(namesOf(ref), u.covers)
}

const status = "status"

// parts returns the other subresources that the set covers and whose fields the endpoint's object has. A write of the object, or of a
// part of it in the object's kind, can change the owners of such fields. Only for the status does an API server record which owners
// belong to it.
func (u *set) parts(ref schema.ResourceRef) []string {
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

func (u *set) covers(ref schema.ResourceRef) bool {
	for r := range u.named(ref.Group) {
		if r == "*" || r == ref.Resource || ref.Subresource != "" && (r == ref.Name() || r == "*/"+ref.Subresource) {
			return true
		}
	}
	return len(u.resources) == 0
}

// named returns the resource names of the set in a group.
func (u *set) named(group string) iter.Seq[string] {
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

// namesOf returns the endpoint and its aliases.
func namesOf(ref schema.ResourceRef) []schema.ResourceRef {
	out := []schema.ResourceRef{ref}
	for _, alias := range endpoint.Aliases(ref.Group, ref.Resource, ref.Subresource) {
		out = append(out, schema.ResourceRef{Group: alias.Group, Resource: alias.Resource, Subresource: alias.Subresource})
	}
	return out
}
