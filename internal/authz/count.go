package authz

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/metrics"
)

// counting counts the decisions of an authorizer in apiserver_authorization_decisions_total (KEP-3221), as k8s.io/apiserver's
// InstrumentedAuthorizer does, with one difference: a Deny beside an error is not counted as denied. Under failurePolicy Deny a webhook that
// fails gives such a decision. The caller gets a 500, and no authorizer has denied anything (P4).
type counting struct {
	authorizer.Authorizer
	kind, name string
}

func newCounting(kind, name string, a authorizer.Authorizer) *counting {
	metrics.RegisterMetrics()
	return &counting{a, kind, name}
}

func (c *counting) count(decision authorizer.Decision, err error) {
	switch {
	case decision == authorizer.DecisionAllow:
		metrics.RecordAuthorizationDecision(c.kind, c.name, "allowed")
	case decision == authorizer.DecisionDeny && err == nil:
		metrics.RecordAuthorizationDecision(c.kind, c.name, "denied")
	}
}

// Authorize asks the authorizer.
func (c *counting) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := c.Authorizer.Authorize(ctx, a)
	c.count(decision, err)
	return decision, reason, err
}

// ConditionsAwareAuthorize asks the authorizer. Conditions are no decision yet: they count as conditional.
func (c *counting) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	decision := c.Authorizer.ConditionsAwareAuthorize(ctx, a)
	switch {
	case decision.IsNoOpinion():
	case decision.IsAllow():
		c.count(authorizer.DecisionAllow, nil)
	case decision.IsDeny():
		c.count(authorizer.DecisionDeny, decision.Error())
	default:
		metrics.RecordAuthorizationDecision(c.kind, c.name, "conditional")
	}
	return decision
}

// EvaluateConditions evaluates conditions of the authorizer.
func (c *counting) EvaluateConditions(ctx context.Context, of authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
	decision, reason, err := c.Authorizer.EvaluateConditions(ctx, of, data)
	c.count(decision, err)
	return decision, reason, err
}
