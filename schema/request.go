package schema

import (
	"context"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
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

// Name returns the resource with its subresource.
func (r ResourceRef) Name() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// String returns the endpoint without its version.
func (r ResourceRef) String() string {
	return runtimeschema.GroupResource{Group: r.Group, Resource: r.Name()}.String()
}

// Clone copies the names, which may be parts of the body of a request.
func (r ResourceRef) Clone() ResourceRef {
	return ResourceRef{Group: strings.Clone(r.Group), Version: strings.Clone(r.Version), Resource: strings.Clone(r.Resource), Subresource: strings.Clone(r.Subresource)}
}

// Sets are the UncoveredPermissionSets of a schema. Package schema/sets implements it.
type Sets interface {
	// Matching returns the barriers of the sets that match a request and have an action, which is Deny for those that refuse writes.
	Matching(ctx context.Context, ref ResourceRef, request Request, action v1alpha1.ValidationAction) (VerbSet, error)
	// Verbs are those of SetVerbs.
	Verbs(ref ResourceRef) []SetVerb
}

// SetVerb is a verb that an UncoveredPermissionSet makes a barrier for requests to an endpoint.
type SetVerb struct {
	Source string
	Verb   verbs.Verb
	// Actions are what the set does in place of refusing; it refuses if there are none.
	Actions []v1alpha1.ValidationAction
	// Conditions are the match conditions. The barrier holds for a request if all are true.
	Conditions []v1alpha1.MatchCondition
}

// SetVerbs returns the verbs of all sets that cover an endpoint under any of its names, by source and verb. In contrast to Uncovered it
// evaluates no condition. Callers must not change the slices of the result.
func (s *Schema) SetVerbs(ref ResourceRef) []SetVerb {
	if s.parts.Sets == nil {
		return nil
	}
	return s.parts.Sets.Verbs(ref)
}

// Uncovered returns the verbs that are barriers for the request, from every UncoveredPermissionSet that refuses writes and matches any name
// of the endpoint.
// A match condition counts as true if it fails, or if the context ends. Some requests change a stored object that they do not show; they
// are matched twice, with their own operation and as an UPDATE. The error is for the log only. Callers must not change the result.
func (s *Schema) Uncovered(ctx context.Context, ref ResourceRef, request Request) (VerbSet, error) {
	return s.Tried(ctx, ref, request, v1alpha1.ValidationDeny)
}

// Tried is Uncovered for the sets that have an action and do not refuse writes.
func (s *Schema) Tried(ctx context.Context, ref ResourceRef, request Request, action v1alpha1.ValidationAction) (VerbSet, error) {
	if s.parts.Sets == nil {
		return nil, nil
	}
	return s.parts.Sets.Matching(ctx, ref, request, action)
}

// MaxGuardedPlaces is how many places of a kind are visited to find or count its guarded fields, because a schema may unfold without bound.
const MaxGuardedPlaces = 5000

// GuardedBy reports whether the node is charged and can have one of the verbs.
func (n *Node) GuardedBy(of VerbSet) bool {
	if n.Role() != RoleNone {
		return false
	}
	return slices.ContainsFunc(n.Permissions(), func(p *Permission) bool {
		for v := range of {
			if p.MayBe(v) {
				return true
			}
		}
		return false
	})
}
