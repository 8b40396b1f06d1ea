package conditions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
)

// Chain asks authorizers in order, and asks no authorizer earlier than its decision is needed. The union of the library asks all of them in
// the authorization phase. The nil Chain has no opinion on any request. Chain is immutable.
type Chain struct {
	// members are unions of one authorizer each: the library checks and names their decisions.
	members []authorizer.Authorizer
}

// NewChain returns a Chain. It returns an error if an authorizer is nil, or if a name is empty or occurs twice.
func NewChain(named ...union.NamedAuthorizer) (*Chain, error) {
	if _, err := union.New(named...); err != nil {
		return nil, err
	}
	c := &Chain{}
	for _, n := range named {
		if n.Authorizer == nil {
			return nil, fmt.Errorf("authorizer %q: is nil: give an authorizer", n.AuthorizerName)
		}
		one, err := union.New(n)
		if err != nil {
			return nil, err
		}
		c.members = append(c.members, one)
	}
	return c, nil
}

// Pending is the result of the authorization phase: the decisions of the authorizers that were asked. The zero Pending denies.
type Pending struct {
	chain      *Chain
	attributes authorizer.Attributes
	decided    []authorizer.ConditionsAwareDecision
}

// Authorize makes the authorization phase. It asks authorizers until one denies, or until the request is allowed or can become allowed.
func (c *Chain) Authorize(ctx context.Context, a authorizer.Attributes) Pending {
	if c == nil {
		c = &Chain{}
	}
	p := Pending{chain: c, attributes: a}
	for _, member := range c.members {
		decision := member.ConditionsAwareAuthorize(ctx, a)
		p.decided = append(p.decided, decision)
		if decision.ContainsUnconditionalAllowOrDeny() || decision.PossibleDecisions().Has(authorizer.DecisionAllow) {
			break
		}
	}
	return p
}

// CanBecomeAllowed reports whether objects can exist with which the request is allowed. If not, it is refused at once.
func (p *Pending) CanBecomeAllowed() bool {
	// Authorize ends with the first decision that can allow. One that can deny, before it, may also have no opinion.
	n := len(p.decided)
	return n > 0 && p.decided[n-1].PossibleDecisions().Has(authorizer.DecisionAllow)
}

// Unconditional returns the decision if no object can change it, and whether there is one. Authorizers that were not asked can change it no
// more.
func (p *Pending) Unconditional() (decision authorizer.Decision, reason string, err error, ok bool) {
	if p.chain == nil {
		return authorizer.DecisionDeny, "", errNoChain, true
	}
	var decisions authorizer.ConditionsAwareDecisionUnion
	for i, d := range p.decided {
		decisions.Add(fmt.Sprintf("authorizer-%d", i), d)
	}
	all := decisions.ToDecision()
	switch {
	case !all.IsUnconditional():
		return authorizer.DecisionDeny, "", nil, false
	case all.IsAllow():
		decision = authorizer.DecisionAllow
	case all.IsNoOpinion():
		decision = authorizer.DecisionNoOpinion
	}
	reason, err = p.reasons(decision)
	return decision, reason, err, true
}

// reasons joins those of the unconditional decisions that are the same as one.
func (p *Pending) reasons(as authorizer.Decision) (string, error) {
	var n notes
	for _, d := range p.decided {
		if d.IsUnconditional() && d.PossibleDecisions().Has(as) {
			n.add(d.Reason(), d.Error())
		}
	}
	return n.reason(), n.err()
}

var errNoChain = errors.New("decision of the authorization phase: is empty: call Authorize first")

// Evaluate decides with the objects. The decisions of the authorization phase are used as they were. Authorizers that were not asked then are
// asked now, if no decision before theirs allows or denies. An error beside NoOpinion is for the log: no authorizer allowed the request.
func (p *Pending) Evaluate(ctx context.Context, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
	if p.chain == nil {
		return authorizer.DecisionDeny, "", errNoChain
	}
	if data == nil {
		return authorizer.DecisionDeny, "", errors.New("conditions: have no objects to be evaluated on: give the data of the admission request")
	}
	var n notes
	for i, member := range p.chain.members {
		var decision authorizer.ConditionsAwareDecision
		if i < len(p.decided) {
			decision = p.decided[i]
		} else {
			decision = member.ConditionsAwareAuthorize(ctx, p.attributes)
		}
		outcome, reason, err := evaluate(ctx, member, decision, data)
		if outcome != authorizer.DecisionNoOpinion {
			return outcome, reason, err
		}
		n.add(reason, err)
	}
	return authorizer.DecisionNoOpinion, n.reason(), n.err()
}

func evaluate(ctx context.Context, of authorizer.Authorizer, d authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
	switch {
	case d.IsAllow():
		return authorizer.DecisionAllow, d.Reason(), d.Error()
	case d.IsNoOpinion():
		return authorizer.DecisionNoOpinion, d.Reason(), d.Error()
	case d.IsDeny():
		return authorizer.DecisionDeny, d.Reason(), d.Error()
	}
	return of.EvaluateConditions(ctx, d, data)
}

// notes collects the reasons and errors of authorizers that have no opinion.
type notes struct {
	reasons []string
	errs    []error
}

func (n *notes) add(reason string, err error) {
	if reason != "" {
		n.reasons = append(n.reasons, reason)
	}
	if err != nil {
		n.errs = append(n.errs, err)
	}
}

func (n *notes) reason() string { return strings.Join(n.reasons, "\n") }

func (n *notes) err() error { return utilerrors.NewAggregate(n.errs) }
