package plugin

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/internal/conditions/expression"
)

// ofWebhooks asks webhooks that return conditions about a request, in their order, and returns their rows.
func ofWebhooks(ctx context.Context, webhooks []union.NamedAuthorizer, attributes authorizer.Attributes) []listed {
	var out []listed
	for _, one := range webhooks {
		out = append(out, rowsOf(one.AuthorizerName, one.Authorizer.ConditionsAwareAuthorize(ctx, attributes))...)
	}
	return out
}

// rowsOf returns the rows of a decision of an authorizer, none if it has no opinion.
func rowsOf(name string, d authorizer.ConditionsAwareDecision) []listed {
	var out []listed
	switch {
	case d.IsUnion():
		for _, inner := range d.UnionedDecisions() {
			out = append(out, rowsOf(name, inner)...)
		}
		return out
	case d.IsConditionsMap():
		all := d.ConditionsMap()
		for _, some := range []struct {
			effect     expression.Effect
			conditions func(func(authorizer.Condition) bool)
		}{{expression.Deny, all.DenyConditions()}, {expression.NoOpinion, all.NoOpinionConditions()}, {expression.Allow, all.AllowConditions()}} {
			for c := range some.conditions {
				out = append(out, listed{Authorizer: name, Policy: c.GetID(), Effect: some.effect.String(), Condition: c.GetCondition(), Description: c.GetDescription()})
			}
		}
		return out
	}
	row := listed{Authorizer: name, Effect: expression.Deny.String(), Condition: "true", Description: d.Reason()}
	switch {
	case d.IsAllow():
		row.Effect = expression.Allow.String()
	case d.IsNoOpinion() && d.Error() == nil:
		return nil
	case d.IsNoOpinion():
		row.Effect = expression.NoOpinion.String()
	}
	if err := d.Error(); err != nil {
		row.Error = err.Error()
		if !d.IsAllow() {
			// The failure policy decides, and not a condition.
			row.Condition = ""
		}
	}
	return []listed{row}
}

// nothingListed returns an error if there are rows and all of them are failures of webhooks.
func nothingListed(rows []listed) error {
	var errs []error
	for i := range rows {
		if rows[i].Error == "" || rows[i].Condition != "" || rows[i].Authorizer == ofPolicies {
			return nil
		}
		errs = append(errs, errors.New(rows[i].Error))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("no webhook of --authorization-config answers: %w: see that they are up, and that this host may ask them", errors.Join(errs...))
}
