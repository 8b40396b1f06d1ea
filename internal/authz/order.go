package authz

import (
	"cmp"
	"context"
	"slices"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// Conditional returns the conditions on a write, for admission.Reviewer. then is the authorizer that For returned for the request.
type Conditional func(write *admission.Write, then fieldperm.Authorizer) (admission.Conditions, error)

// ConditionalAfter returns the conditions of first, which are those of policies, and after them those of the webhooks of the chain that decides
// the review.
func ConditionalAfter(first Conditional) Conditional {
	return func(write *admission.Write, then fieldperm.Authorizer) (admission.Conditions, error) {
		ofPolicies, err := first(write, then)
		if err != nil {
			return nil, err
		}
		ofWebhooks := Conditions(then, write)
		switch {
		case ofWebhooks == nil:
			return ofPolicies, nil
		case ofPolicies == nil:
			return ofWebhooks, nil
		}
		return inOrder{ofPolicies, ofWebhooks}, nil
	}
}

// inOrder asks conditions in order. The first that allows or denies decides.
type inOrder []admission.Conditions

// Authorize asks for one verb.
func (o inOrder) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	none := fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}
	for _, one := range o {
		answer, err := one.Authorize(ctx, verb, generic)
		switch {
		case err != nil || answer.Outcome == fieldperm.Allow:
			return answer, err
		case answer.Outcome != fieldperm.NoOpinion:
			// What failed before might have allowed the verb. A Deny of the generic verb denies the request (P4).
			if answer.Failure = cmp.Or(answer.Failure, none.Failure); generic && answer.Failure != nil {
				return fieldperm.AuthorizerDecision{}, answer.Failure
			}
			return answer, nil
		}
		if none.Failure == nil {
			none.Failure = answer.Failure
		}
	}
	return none, nil
}

// Unmet returns the conditions of all.
func (o inOrder) Unmet(verbs []string) []fieldperm.Unmet {
	var out []fieldperm.Unmet
	for _, one := range o {
		out = slices.Concat(out, one.Unmet(verbs))
	}
	return out
}
