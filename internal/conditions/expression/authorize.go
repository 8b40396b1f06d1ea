package expression

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Effect says what a policy does when its expression is true. The zero value is Deny.
type Effect int

// These are the effects, from strong to weak.
const (
	Deny Effect = iota
	NoOpinion
	Allow
)

// String returns the name of the effect.
func (e Effect) String() string {
	switch e {
	case Allow:
		return "Allow"
	case NoOpinion:
		return "NoOpinion"
	default:
		return "Deny"
	}
}

// Policy is an expression with an effect. A policy without an expression is an error on every request.
type Policy struct {
	// ID is a label key that no other policy of the authorizer has.
	ID, Description string
	Effect          Effect
	Expression      *Expression
}

// Authorize decides on policies by what is known, as KEP-5681 requires ("Authorizer requirements"). The decision is conditional only if
// the objects can change it. The strength is Deny, conditional Deny, NoOpinion, conditional NoOpinion, Allow, conditional Allow. Where a
// conditional Deny or NoOpinion is beside an Allow, the Allow is the condition `true`.
//
// An error of a Deny policy denies, an error of a NoOpinion policy is NoOpinion, and an Allow policy with an error allows nothing. An effect
// that is none of the three denies. More than authorizer.MaxConditionsPerMap conditions, or invalid or duplicate ids of conditions, are an
// error that denies if one of them is a Deny, and else is NoOpinion.
func Authorize(ctx context.Context, policies []Policy, known Known) authorizer.ConditionsAwareDecision {
	var f foldedPolicies
	for i := range policies {
		f.add(ctx, &policies[i], known)
	}
	return f.decision()
}

// foldedPolicies are the policies by effect and outcome.
type foldedPolicies struct {
	denied, ignored, allowed   string
	denyErrs, ignoreErrs, errs []error
	deny, noOpinion, allow     []authorizer.Condition
	// allowedBy is the first policy that allows whatever the objects are.
	allowedBy *Policy
}

func (f *foldedPolicies) add(ctx context.Context, p *Policy, known Known) {
	folded := p.Expression.Fold(ctx, known)
	err := folded.Err
	if folded.Outcome == Failed {
		if err == nil {
			err = errors.New("no outcome")
		}
		err = fmt.Errorf("policy %q with effect %s: %w", p.ID, p.Effect, err)
	}
	switch p.Effect {
	case Allow:
		f.addAllow(p, folded, err)
	case NoOpinion:
		addStrong(p, folded, err, &f.ignored, &f.ignoreErrs, &f.noOpinion)
	default:
		addStrong(p, folded, err, &f.denied, &f.denyErrs, &f.deny)
	}
}

// addStrong adds a policy of an effect for which an error counts as true.
func addStrong(p *Policy, folded Folded, err error, reason *string, errs *[]error, conditions *[]authorizer.Condition) {
	switch folded.Outcome {
	case False:
	case Residual:
		*conditions = append(*conditions, p.condition(folded.Residual))
	case True:
		if *reason == "" {
			*reason = p.reason()
		}
	default:
		*errs = append(*errs, err)
	}
}

func (f *foldedPolicies) addAllow(p *Policy, folded Folded, err error) {
	switch folded.Outcome {
	case False:
	case Residual:
		f.allow = append(f.allow, p.condition(folded.Residual))
	case True:
		if f.allowedBy == nil {
			f.allowedBy, f.allowed = p, p.reason()
		}
	default:
		f.errs = append(f.errs, err)
	}
}

// decision returns the strongest.
func (f *foldedPolicies) decision() authorizer.ConditionsAwareDecision {
	if f.denied != "" {
		return authorizer.ConditionsAwareDecisionDeny(f.denied, nil)
	}
	if len(f.denyErrs) > 0 {
		return authorizer.ConditionsAwareDecisionDeny("a policy that may deny cannot be evaluated", errors.Join(f.denyErrs...))
	}
	isIgnored := f.ignored != "" || len(f.ignoreErrs) > 0
	if isIgnored || f.allowedBy == nil && len(f.allow) == 0 {
		return f.withoutAllow()
	}
	if f.allowedBy == nil {
		return authorizer.ConditionsAwareDecisionConditionsMap(f.deny, f.noOpinion, f.allow)
	}
	if len(f.deny) == 0 && len(f.noOpinion) == 0 {
		return authorizer.ConditionsAwareDecisionAllow(f.allowed, nil)
	}
	return authorizer.ConditionsAwareDecisionConditionsMap(f.deny, f.noOpinion, []authorizer.Condition{f.allowedBy.always()})
}

// withoutAllow is the decision where nothing can allow. Then NoOpinion conditions change nothing.
func (f *foldedPolicies) withoutAllow() authorizer.ConditionsAwareDecision {
	switch {
	case len(f.deny) > 0:
		return authorizer.ConditionsAwareDecisionConditionsMap(f.deny, nil, nil)
	case f.ignored != "":
		return authorizer.ConditionsAwareDecisionNoOpinion(f.ignored, nil)
	case len(f.ignoreErrs) > 0:
		return authorizer.ConditionsAwareDecisionNoOpinion("a policy cannot be evaluated", errors.Join(f.ignoreErrs...))
	default:
		return authorizer.ConditionsAwareDecisionNoOpinion("no policy allows the request", errors.Join(f.errs...))
	}
}

// reason is worded as the library words it for conditions.
func (p *Policy) reason() string {
	out := fmt.Sprintf("policy %q has effect %s", p.ID, p.Effect)
	if p.Description != "" {
		out += fmt.Sprintf(" with description %q", p.Description)
	}
	return out
}

// condition returns the condition of a residual. Its text is made when it is read.
func (p *Policy) condition(residual *Remainder) authorizer.Condition {
	return condition{authorizer.GenericCondition{ID: p.ID, Type: Type, Description: p.Description, EvaluateFunc: residual.result}, residual}
}

type condition struct {
	authorizer.GenericCondition
	residual *Remainder
}

// GetCondition returns the text of the residual. A residual that does not compile has none, and "" does not compile either.
func (c condition) GetCondition() string { return c.residual.String() }

// always returns the condition of a policy that is true whatever the objects are.
func (p *Policy) always() authorizer.Condition {
	isTrue := func(context.Context, authorizer.ConditionsData) authorizer.ConditionEvaluationResult {
		return authorizer.ConditionEvaluationResultBoolean(true)
	}
	return authorizer.GenericCondition{ID: p.ID, Type: Type, Condition: "true", Description: p.Description, EvaluateFunc: isTrue}
}
