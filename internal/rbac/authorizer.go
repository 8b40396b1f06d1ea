package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Authorizer answers as the RBAC authorizer of a kube-apiserver that has exactly the grants, with its
// reasons: Allow, or NoOpinion and never Deny. Members of system:masters are allowed everything, and
// whoever asks counts as authenticated (see Authenticated), because in an API server that has been
// seen to before RBAC is asked. Where several bindings allow the same, the reason names the first in
// the order of the files; the order of an API server is not defined. The zero Authorizer allows nothing but
// what system:masters asks. It is immutable and safe for concurrent use.
type Authorizer struct {
	cluster    []binding
	namespaced map[string][]binding
	warnings   []string
}

// binding is a binding with the rules of its role, or without if the role is missing.
type binding struct {
	description string // of the binding and its role, as reasons have it
	namespace   string
	subjects    []rbacv1.Subject
	rules       []rbacv1.PolicyRule
	missing     string // why there are no rules; "" if the role exists
}

var _ authorizer.Authorizer = &Authorizer{}

// New resolves aggregation and role references once. A binding to a role that is not among the grants
// has no effect; Warnings tells of it.
func New(g Grants) (*Authorizer, error) {
	if err := g.validate(); err != nil {
		return nil, fmt.Errorf("grants: %w", err)
	}
	clusterRules, err := aggregate(g.ClusterRoles)
	if err != nil {
		return nil, fmt.Errorf("grants: %w", err)
	}
	a := &Authorizer{namespaced: map[string][]binding{}}
	for i := range g.ClusterRoles {
		r := &g.ClusterRoles[i]
		if r.AggregationRule != nil && slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return !hasRule(clusterRules[r.Name], rule) }) {
			a.warnings = append(a.warnings, fmt.Sprintf("ClusterRole %q: has rules that its aggregationRule does not yield, which do not count: add the ClusterRoles that it selects", r.Name))
		}
	}
	rules := map[string][]rbacv1.PolicyRule{}
	exists := map[string]bool{}
	for i := range g.ClusterRoles {
		key := roleKey("ClusterRole", "", g.ClusterRoles[i].Name)
		rules[key], exists[key] = clusterRules[g.ClusterRoles[i].Name], true
	}
	for i := range g.Roles {
		key := roleKey("Role", g.Roles[i].Namespace, g.Roles[i].Name)
		rules[key], exists[key] = g.Roles[i].Rules, true
	}
	resolve := func(kind, name, namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) binding {
		b := binding{
			description: fmt.Sprintf("%s %q of %s %q", kind, name, ref.Kind, ref.Name),
			namespace:   namespace,
			subjects:    subjects,
		}
		key := roleKey(ref.Kind, namespace, ref.Name)
		if b.rules = rules[key]; !exists[key] {
			b.missing = fmt.Sprintf("%s.%s %q not found", strings.ToLower(ref.Kind), rbacv1.GroupName, ref.Name)
			a.warnings = append(a.warnings, fmt.Sprintf("%s %q: %s %q is not among the grants, and so it grants nothing: add the role", kind, name, ref.Kind, ref.Name))
		}
		return b
	}
	for i := range g.ClusterRoleBindings {
		b := &g.ClusterRoleBindings[i]
		a.cluster = append(a.cluster, resolve("ClusterRoleBinding", b.Name, "", b.RoleRef, b.Subjects))
	}
	for i := range g.RoleBindings {
		b := &g.RoleBindings[i]
		// The API server's reasons name a binding as name/namespace, not the other way round.
		a.namespaced[b.Namespace] = append(a.namespaced[b.Namespace], resolve("RoleBinding", b.Name+"/"+b.Namespace, b.Namespace, b.RoleRef, b.Subjects))
	}
	return a, nil
}

func roleKey(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		namespace = ""
	}
	return kind + "/" + namespace + "/" + name
}

// Warnings tells what in the grants is without effect though it seems to be meant to have one.
func (a *Authorizer) Warnings() []string { return slices.Clone(a.warnings) }

// Authorize answers Allow or NoOpinion, never an error. The reason of a NoOpinion names the roles
// that the user's bindings refer to but that do not exist.
func (a *Authorizer) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if attributes.GetUser() == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	u := Authenticated(attributes.GetUser())
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	bindings := a.cluster
	if namespace := attributes.GetNamespace(); namespace != "" {
		bindings = append(slices.Clip(bindings), a.namespaced[namespace]...)
	}
	var missing []string
	for i := range bindings {
		b := &bindings[i]
		subject := appliesTo(b.subjects, u, b.namespace)
		if subject == nil {
			continue
		}
		if b.missing != "" {
			missing = append(missing, b.missing)
		}
		if slices.ContainsFunc(b.rules, func(rule rbacv1.PolicyRule) bool { return allows(&rule, attributes) }) {
			return authorizer.DecisionAllow, fmt.Sprintf("RBAC: allowed by %s to %s", b.description, describe(subject, b.namespace)), nil
		}
	}
	return authorizer.DecisionNoOpinion, notFound(missing), nil
}

func describe(s *rbacv1.Subject, namespace string) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return fmt.Sprintf("%s %q", s.Kind, s.Name+"/"+accountNamespace(s, namespace))
	}
	return fmt.Sprintf("%s %q", s.Kind, s.Name)
}

// notFound is the reason of a NoOpinion, in the form in which an API server aggregates errors.
func notFound(missing []string) string {
	seen := map[string]bool{}
	missing = slices.DeleteFunc(missing, func(m string) bool {
		again := seen[m]
		seen[m] = true
		return again
	})
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return "RBAC: " + missing[0]
	}
	return "RBAC: [" + strings.Join(missing, ", ") + "]"
}

// ConditionsAwareAuthorize answers as Authorize does: RBAC has no conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions denies: Authorizer never answers with conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
