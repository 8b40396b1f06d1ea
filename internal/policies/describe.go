package policies

import (
	"context"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Description is a policy about a request, as far as it is known before the objects are.
type Description struct {
	Policy, Effect, Description string
	// Condition is what is left of the condition: "true", "false", an expression over the objects, or "" after an error.
	Condition string
	// Err is why the condition cannot be evaluated, whatever the objects are.
	Err error
}

// Describe returns the policies about a request: first Deny, then NoOpinion, then Allow, each by name. This is the order in which they
// count.
func (s *Set) Describe(ctx context.Context, a authorizer.Attributes) []Description {
	var out []Description
	ref := endpoint.Ref{Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource()}
	of := version{runtimeschema.GroupVersionResource{Group: ref.Group, Version: a.GetAPIVersion(), Resource: ref.Resource}, ref.Subresource}
	about := s.about(a.GetVerb(), a.GetUser().GetName(), a.GetUser().GetGroups(), &ref)
	for _, effect := range []expression.Effect{expression.Deny, expression.NoOpinion, expression.Allow} {
		for _, p := range about {
			if p.decides.Effect != effect {
				continue
			}
			one := Description{Policy: p.name, Effect: effect.String(), Description: p.decides.Description}
			if one.Err = p.fits(of); one.Err == nil {
				one.Condition, one.Err = folded(p.decides.Expression.Fold(ctx, expression.KnownOf(a)))
			}
			out = append(out, one)
		}
	}
	return out
}

func folded(f expression.Folded) (string, error) {
	switch f.Outcome {
	case expression.True:
		return "true", nil
	case expression.False:
		return "false", nil
	case expression.Residual:
		left, err := f.Residual.Expression()
		if err != nil {
			return "", err
		}
		return left.String(), nil
	case expression.Failed:
	}
	return "", f.Err
}
