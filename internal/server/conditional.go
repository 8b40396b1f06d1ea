package server

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/shorten"
)

// phaseOne returns the authorizer of the authorization phase: policies, then webhooks that return conditions. It returns nil if there are neither.
func (a *authorization) phaseOne() (authorizer.Authorizer, error) {
	set, err := a.schemas.policies.Set()
	if err != nil {
		return nil, err
	}
	return inPhaseOne(set, a.chain.Conditional())
}

func inPhaseOne(set *policies.Set, webhooks []union.NamedAuthorizer) (authorizer.Authorizer, error) {
	switch {
	case len(webhooks) == 0 && set.Empty():
		return nil, nil
	case len(webhooks) == 0:
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
