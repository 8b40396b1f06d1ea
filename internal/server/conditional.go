package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/shorten"
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
		return ofPolicies{set}, nil
	}
	return newFirstPhase(append([]union.NamedAuthorizer{{AuthorizerName: policies.Name, Authorizer: ofPolicies{set}}}, webhooks...))
}

// ofPolicies are the decisions of policies without errors. An error of a condition counts as false or as true (K4). It is no failure of an
// authorizer, which is an error of the request (P4).
type ofPolicies struct{ authorizer.Authorizer }

// ConditionsAwareAuthorize asks the policies.
func (p ofPolicies) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	d := p.Authorizer.ConditionsAwareAuthorize(ctx, a)
	switch err := d.Error(); {
	case err == nil:
		return d
	case d.IsAllow():
		return authorizer.ConditionsAwareDecisionAllow(d.Reason(), nil)
	case d.IsNoOpinion():
		return authorizer.ConditionsAwareDecisionNoOpinion(d.Reason(), nil)
	default:
		return authorizer.ConditionsAwareDecisionDeny(shorten.Within(fmt.Sprintf("%s: %v", d.Reason(), err), maxReason), nil)
	}
}

// maxReason is the largest reason in bytes.
const maxReason = 1024

// firstPhase asks authorizers in order, as the union of the library does. In contrast to it, a Deny has the error of an authorizer before it that
// failed and might have allowed the request (P4).
type firstPhase struct {
	authorizer.Authorizer
	members []union.NamedAuthorizer
}

func newFirstPhase(members []union.NamedAuthorizer) (*firstPhase, error) {
	all, err := union.New(members...)
	return &firstPhase{all, members}, err
}

// ConditionsAwareAuthorize asks the authorizers.
func (p *firstPhase) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	var all authorizer.ConditionsAwareDecisionUnion
	var failed error
	for _, one := range p.members {
		d := one.Authorizer.ConditionsAwareAuthorize(ctx, a)
		all.Add(one.AuthorizerName, d)
		if d.ContainsUnconditionalAllowOrDeny() {
			break
		}
		failed = cmp.Or(failed, d.Error(), wire.Failure(d))
	}
	out := all.ToDecision()
	if out.IsDeny() {
		return authorizer.ConditionsAwareDecisionDeny(out.Reason(), cmp.Or(out.Error(), failed))
	}
	return out
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
func (o inOrder) Unmet() []fieldperm.Unmet {
	var out []fieldperm.Unmet
	for _, one := range o {
		out = slices.Concat(out, one.Unmet())
	}
	return out
}
