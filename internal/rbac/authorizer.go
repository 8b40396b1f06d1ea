package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Authorizer decides like the RBAC authorizer of a kube-apiserver that has exactly these grants, with the same reasons: Allow or
// NoOpinion, never Deny. It allows everything to members of system:masters, and treats every user as authenticated (see
// Authenticated): an API server handles both before it asks RBAC. If several bindings allow a request, the reason names the first
// by name; the order in an API server is not defined. The zero Authorizer allows only requests of system:masters. Authorizer is
// immutable and safe for concurrent use.
type Authorizer struct {
	index    *index
	warnings []string
	// stored means that the grants are those of an API server.
	stored bool
}

var _ authorizer.Authorizer = &Authorizer{}

// New returns an Authorizer for the grants. It resolves aggregation once. A binding to a role that is not in the grants has no
// effect and is reported by Warnings.
func New(g Grants) (*Authorizer, error) {
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("grants: %w", err)
	}
	rules, err := aggregate(g.ClusterRoles)
	if err != nil {
		return nil, fmt.Errorf("grants: %w", err)
	}
	a := &Authorizer{index: newIndex()}
	var errs []error
	for i := range g.ClusterRoles {
		r := &g.ClusterRoles[i]
		if r.AggregationRule != nil && slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return !hasRule(rules[r.Name], rule) }) {
			a.warnings = append(a.warnings, fmt.Sprintf("ClusterRole %q: has rules that its aggregationRule does not yield, which do not count: add the ClusterRoles that it selects", r.Name))
		}
		effective := *r
		effective.Rules = rules[r.Name]
		errs = append(errs, a.index.clusterRoles.Add(&effective))
	}
	for i := range g.Roles {
		errs = append(errs, a.index.roles.Add(&g.Roles[i]))
	}
	for i := range g.ClusterRoleBindings {
		errs = append(errs, a.index.clusterRoleBindings.Add(&g.ClusterRoleBindings[i]))
		a.warnOfMissing(bindingOf(&g.ClusterRoleBindings[i]))
	}
	for i := range g.RoleBindings {
		errs = append(errs, a.index.roleBindings.Add(&g.RoleBindings[i]))
		a.warnOfMissing(bindingOf(&g.RoleBindings[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("grants: %w", err)
	}
	return a, nil
}

// NewStored returns an Authorizer for the grants that List has read of an API server. It decides as Live does: the rules of an aggregated
// ClusterRole are the stored ones, and groups of the user are those that are given.
func NewStored(g Grants) (*Authorizer, error) {
	g.ClusterRoles = slices.Clone(g.ClusterRoles)
	for i := range g.ClusterRoles {
		g.ClusterRoles[i].AggregationRule = nil
	}
	a, err := New(g)
	if err == nil {
		a.stored = true
	}
	return a, err
}

func (a *Authorizer) warnOfMissing(b binding) {
	if _, err := a.index.rules(&b); err != nil {
		a.warnings = append(a.warnings, fmt.Sprintf("%s: %s %q is not among the grants, and so it grants nothing: add the role", b.title(), b.role.Kind, b.role.Name))
	}
}

// Warnings returns the parts of the grants that have no effect although they seem to be intended to have one.
func (a *Authorizer) Warnings() []string { return slices.Clone(a.warnings) }

// Authorize returns Allow or NoOpinion. The error is always nil. The reason of a NoOpinion names the roles that the user's bindings
// refer to but that do not exist.
func (a *Authorizer) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	switch {
	case attributes.GetUser() == nil:
		return authorizer.DecisionNoOpinion, "", nil
	case a.stored:
		return a.index.authorize(attributes.GetUser(), attributes)
	}
	u := Authenticated(attributes.GetUser())
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	return a.index.authorize(u, attributes)
}

// ConditionsAwareAuthorize returns the same as Authorize: RBAC has no conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions denies, because Authorizer never returns conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
