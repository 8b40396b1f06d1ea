package policies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Name is the name of this authorizer in messages and metrics.
const Name = v1alpha1.ConditionalPolicyKind

// idPrefix and the name of a policy are the id of its condition.
const idPrefix = "fieldperm.dev/"

// policy is a ConditionalPolicy in the form in which it decides. It is immutable.
type policy struct {
	name      string
	subjects  v1alpha1.Subjects
	verbs     []string
	resources []v1alpha1.PolicyResource
	// checked has the versions whose types the condition was checked against, false for one that it does not fit.
	checked map[version]bool
	// isUnchecked means that there are no types to check the condition against.
	isUnchecked bool
	// decides has the expression, nil if it does not compile.
	decides expression.Policy
}

// version is a resource in one version.
type version struct {
	runtimeschema.GroupVersionResource
	subresource string
}

func effectOf(e v1alpha1.PolicyEffect) expression.Effect {
	switch e {
	case v1alpha1.PolicyAllow:
		return expression.Allow
	case v1alpha1.PolicyNoOpinion:
		return expression.NoOpinion
	case v1alpha1.PolicyDeny:
	}
	return expression.Deny
}

func newPolicy(name string, spec *v1alpha1.ConditionalPolicySpec, compiled *expression.Expression, checked map[version]bool) *policy {
	return &policy{
		name: name, subjects: v1alpha1.NewSubjects(spec.Subjects), verbs: spec.Verbs, resources: spec.Resources, checked: checked,
		decides: expression.Policy{ID: idPrefix + name, Description: spec.Description, Effect: effectOf(spec.Effect), Expression: compiled},
	}
}

// matches reports whether the policy is about a resource, in any version. As in RBAC, the name of a resource does not stand for its
// subresources, and "*" stands for all.
func (p *policy) matches(ref *endpoint.Ref) bool {
	return slices.ContainsFunc(p.resources, func(r v1alpha1.PolicyResource) bool { return names(&r, ref) })
}

func names(r *v1alpha1.PolicyResource, ref *endpoint.Ref) bool {
	if !slices.Contains(r.APIGroups, ref.Group) && !slices.Contains(r.APIGroups, "*") {
		return false
	}
	return slices.ContainsFunc(r.Resources, func(name string) bool {
		resource, subresource, _ := strings.Cut(name, "/")
		return name == "*" || subresource == ref.Subresource && (resource == ref.Resource || resource == "*" && subresource != "")
	})
}

// readsChanges reports whether the condition reads the changed fields.
func (p *policy) readsChanges() bool {
	return p.decides.Expression != nil && p.decides.Expression.Uses(expression.Changes)
}

// names reports whether the policy names the version of an object.
func (p *policy) names(of version) bool {
	ref := endpoint.Ref{Group: of.Group, Resource: of.Resource, Subresource: of.subresource}
	return slices.ContainsFunc(p.resources, func(r v1alpha1.PolicyResource) bool {
		return names(&r, &ref) && slices.Contains(r.APIVersions, of.Version)
	})
}

// fits returns an error if the condition is not written for the version of an object, or was not checked against its type. Where only a wildcard
// names the resource, conditions are not checked against types.
func (p *policy) fits(of version) error {
	ref := endpoint.Ref{Group: of.Group, Resource: of.Resource, Subresource: of.subresource}
	fits, checked := p.checked[of]
	written := slices.ContainsFunc(p.resources, func(r v1alpha1.PolicyResource) bool {
		return names(&r, &ref) && (len(r.APIVersions) == 0 || slices.Contains(r.APIVersions, of.Version)) && (checked || p.isUnchecked || !isExact(&r, &ref))
	})
	if !written || checked && !fits {
		return fmt.Errorf("the condition is not written for version %q of %s: name the version in spec.resources, and adapt the condition", of.Version, of.Resource)
	}
	return nil
}

// copyChecked adds the versions of a resource that the condition was checked against. The nil policy has none.
func (p *policy) copyChecked(ref endpoint.Ref, to map[version]bool) {
	if p == nil {
		return
	}
	for of, fits := range p.checked {
		if (endpoint.Ref{Group: of.Group, Resource: of.Resource, Subresource: of.subresource}) == ref {
			to[of] = fits
		}
	}
}

// isExact reports whether a rule names a resource without a wildcard.
func isExact(r *v1alpha1.PolicyResource, ref *endpoint.Ref) bool {
	return slices.Contains(r.APIGroups, ref.Group) && slices.Contains(r.Resources, ref.Name())
}

// fitted returns the policy for an object of a version. It has no expression, which is an error on every request, if it does not fit.
func (p *policy) fitted(of version) expression.Policy {
	out := p.decides
	if p.fits(of) != nil {
		out.Expression = nil
	}
	return out
}

// condition returns the whole condition, for the evaluation in admission. fault is the reason why it cannot be evaluated on the objects of a
// request, nil if it can.
func (p *policy) condition(fault error) authorizer.Condition {
	out := authorizer.GenericCondition{ID: p.decides.ID, Type: expression.Type, Description: p.decides.Description}
	if p.decides.Expression != nil {
		out.Condition = p.decides.Expression.String()
	}
	out.EvaluateFunc = func(ctx context.Context, data authorizer.ConditionsData) authorizer.ConditionEvaluationResult {
		if fault != nil {
			return authorizer.ConditionEvaluationResultError(fault)
		}
		value, err := p.decides.Expression.Evaluate(ctx, data)
		if err != nil {
			return authorizer.ConditionEvaluationResultError(err)
		}
		return authorizer.ConditionEvaluationResultBoolean(value)
	}
	return out
}
