package policies

import (
	"context"
	"fmt"
	"maps"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Set has the policies in force at one time. The nil Set and the zero Set have none. A Set is immutable.
type Set struct {
	// byVerb has the policies of each verb, in the order of their names.
	byVerb map[string][]*policy
}

var _ authorizer.Authorizer = &Set{}

func newSet(policies []*policy) *Set {
	s := &Set{byVerb: map[string][]*policy{}}
	for _, p := range policies {
		for _, verb := range p.verbs {
			s.byVerb[verb] = append(s.byVerb[verb], p)
		}
	}
	return s
}

// Empty reports whether there are no policies.
func (s *Set) Empty() bool { return s == nil || len(s.byVerb) == 0 }

// about returns the policies about a verb of a user on a resource.
func (s *Set) about(verb, user string, groups []string, ref *endpoint.Ref) []*policy {
	if s == nil {
		return nil
	}
	var out []*policy
	for _, p := range s.byVerb[verb] {
		if p.matches(ref) && p.subjects.Include(user, groups) {
			out = append(out, p)
		}
	}
	return out
}

// ConditionsAwareAuthorize decides by what is known before the objects are. The decision is conditional only if the objects can change it.
func (s *Set) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	if !a.IsResourceRequest() || a.GetUser() == nil {
		return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
	}
	ref := endpoint.Ref{Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource()}
	about := s.about(a.GetVerb(), a.GetUser().GetName(), a.GetUser().GetGroups(), &ref)
	if len(about) == 0 {
		return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
	}
	of := version{runtimeschema.GroupVersionResource{Group: ref.Group, Version: a.GetAPIVersion(), Resource: ref.Resource}, ref.Subresource}
	list := make([]expression.Policy, len(about))
	for i, p := range about {
		list[i] = p.fitted(of)
	}
	return expression.Authorize(ctx, list, expression.KnownOf(a))
}

// Authorize is ConditionsAwareAuthorize for a caller that does not handle conditions. A conditional decision is Deny if the objects can make
// it one, and else NoOpinion.
func (s *Set) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision := s.ConditionsAwareAuthorize(ctx, a)
	switch {
	case decision.IsAllow():
		return authorizer.DecisionAllow, decision.Reason(), decision.Error()
	case decision.IsNoOpinion():
		return authorizer.DecisionNoOpinion, decision.Reason(), decision.Error()
	case decision.IsDeny():
		return authorizer.DecisionDeny, decision.Reason(), decision.Error()
	}
	return decision.FailureDecision(), "the decision depends on the objects of the request", nil
}

// EvaluateConditions evaluates a decision of ConditionsAwareAuthorize. Its conditions evaluate themselves.
func (s *Set) EvaluateConditions(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	if !decision.IsConditionsMap() {
		return decision.FailureDecision(), "", fmt.Errorf("decision %s: is not one of this authorizer: send back the one that was received", decision)
	}
	return decision.ConditionsMap().Evaluate(ctx, data, func(_ context.Context, c authorizer.Condition, _ authorizer.ConditionsData) (bool, error) {
		return false, fmt.Errorf("condition %q: is not one of this authorizer", c.GetID())
	})
}

// Subjects returns the users and groups that policies name which may allow something. The name of a ServiceAccount is that of its user.
func (s *Set) Subjects() (users, groups []string) {
	if s == nil {
		return nil, nil
	}
	for _, verb := range slices.Sorted(maps.Keys(s.byVerb)) {
		for _, p := range s.byVerb[verb] {
			if p.decides.Effect == expression.Allow {
				users, groups = append(users, p.subjects.Users...), append(groups, p.subjects.Groups...)
			}
		}
	}
	slices.Sort(users)
	slices.Sort(groups)
	return slices.Compact(users), slices.Compact(groups)
}

// Verbs returns the verbs that policies name, sorted.
func (s *Set) Verbs() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.byVerb))
}
