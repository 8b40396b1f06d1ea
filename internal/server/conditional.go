package server

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/policies"
)

// conditional returns the conditions on a write: those of policies, then those of webhooks.
func (a *authorization) conditional(write *admission.Write, then fieldperm.Authorizer) (admission.Conditions, error) {
	ofPolicies, err := a.schemas.conditional(write, then)
	if err != nil {
		return nil, err
	}
	ofWebhooks := authz.Conditions(then, write)
	switch {
	case ofWebhooks == nil:
		return ofPolicies, nil
	case ofPolicies == nil:
		return ofWebhooks, nil
	}
	return inOrder{ofPolicies, ofWebhooks}, nil
}

// phaseOne returns the authorizer of the authorization phase: policies, then webhooks that return conditions.
func (a *authorization) phaseOne() (authorizer.Authorizer, error) {
	set, err := a.schemas.authorizer()
	if err != nil {
		return nil, err
	}
	webhooks := a.chain.Conditional()
	if len(webhooks) == 0 {
		return set, nil
	}
	return union.New(append([]union.NamedAuthorizer{{AuthorizerName: policies.Name, Authorizer: set}}, webhooks...)...)
}

// inOrder asks conditions in order. The first that allows or denies decides.
type inOrder []admission.Conditions

// Authorize asks for one verb.
func (o inOrder) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	none := fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}
	for _, one := range o {
		answer, err := one.Authorize(ctx, verb, generic)
		if err != nil || answer.Outcome != fieldperm.NoOpinion {
			return answer, err
		}
		if none.Failure == nil {
			none.Failure = answer.Failure
		}
	}
	return none, nil
}

// Unmet returns the conditions of all.
func (o inOrder) Unmet() []fieldperm.Unmet {
	var out []fieldperm.Unmet
	for _, one := range o {
		out = slices.Concat(out, one.Unmet())
	}
	return out
}
