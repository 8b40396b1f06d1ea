package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// Data is the input of conditions with the request as the API server sent it.
type Data interface {
	authorizer.ConditionsData
	Request() *admissionv1.AdmissionRequest
}

// EvaluateConditions asks what a decision of this authorizer becomes with the objects. data must be Data. Decisions are asked about as they
// were returned. A failure decides as the failure policy, and denies also if one of the conditions may deny, or if the peer said so.
func (a *Authorizer) EvaluateConditions(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	of, ok := data.(Data)
	if !ok {
		return a.unevaluated(decision, errNoRequest)
	}
	encoded, err := Encode(of.Request())
	if err != nil {
		return a.unevaluated(decision, err)
	}
	return a.Evaluate(ctx, decision, encoded)
}

var errNoRequest = errors.New("the request in admission is not known, or the API server has converted its objects: take versions out of the rules of the webhook")

// Encode encodes a request in admission for Evaluate, nil for nil. A request without a UID, as of a review that is not a write, gets one.
func Encode(of *admissionv1.AdmissionRequest) (*wire.Admission, error) {
	if of == nil {
		return nil, nil
	}
	if of.UID == "" {
		copied := *of
		copied.UID = uuid.NewUUID()
		of = &copied
	}
	return wire.NewAdmission(of)
}

// Evaluate is EvaluateConditions with the request in admission, nil if it is not known. An unconditional decision is returned as it is. A decision
// that the conditions cannot become is not accepted. An error beside a Deny means that the denial is due to the error.
func (a *Authorizer) Evaluate(ctx context.Context, decision authorizer.ConditionsAwareDecision, of *wire.Admission) (authorizer.Decision, string, error) {
	outcome, reason, err := a.evaluateAll(ctx, decision, of)
	if failure := wire.Failure(decision); failure != nil && err == nil && outcome != authorizer.DecisionAllow {
		err = a.named(failure)
	}
	return outcome, reason, err
}

// evaluateAll asks for the authorizers of a chain one after the other in the first text: its review has the conditions of one authorizer.
func (a *Authorizer) evaluateAll(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, of *wire.Admission,
) (authorizer.Decision, string, error) {
	if a.config.Dialect != wire.ConditionsChain || !decision.IsUnion() {
		return a.evaluate(ctx, decision, of)
	}
	var reasons []string
	var failed error
	for name, part := range decision.UnionedDecisions() {
		if !part.IsUnconditional() {
			var one authorizer.ConditionsAwareDecisionUnion
			one.Add(name, part)
			part = one.ToDecision()
		}
		outcome, reason, err := a.evaluate(ctx, part, of)
		switch outcome {
		case authorizer.DecisionAllow:
			return outcome, reason, err
		case authorizer.DecisionNoOpinion:
			failed = cmp.Or(failed, err)
		default:
			// The authorizer that failed might have allowed the request, so this denial is due to the failure (P4).
			return authorizer.DecisionDeny, reason, cmp.Or(err, failed)
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return authorizer.DecisionNoOpinion, strings.Join(reasons, "\n"), failed
}

// evaluate returns what one decision becomes.
func (a *Authorizer) evaluate(ctx context.Context, decision authorizer.ConditionsAwareDecision, of *wire.Admission) (authorizer.Decision, string, error) {
	if decision.IsUnconditional() {
		return unconditional(decision)
	}
	if of == nil {
		return a.unevaluated(decision, errNoRequest)
	}
	answer, err := a.ask(ctx, decision, of)
	if err != nil {
		return a.unevaluated(decision, err)
	}
	outcome, reason, err := unconditional(answer)
	switch {
	case outcome == authorizer.DecisionNoOpinion && err != nil:
		// The authorizer could not evaluate a condition, which may be one that denies.
		return wire.FailureDecision(decision), reason, a.named(err)
	case !decision.PossibleDecisions().Has(outcome):
		return a.unevaluated(decision, fmt.Errorf("answers %s, which the conditions cannot become: correct the authorizer", outcome))
	case err != nil:
		return outcome, reason, a.named(err)
	}
	return outcome, reason, nil
}

// unconditional returns the parts of a decision without conditions, Deny for any other.
func unconditional(d authorizer.ConditionsAwareDecision) (authorizer.Decision, string, error) {
	switch {
	case d.IsAllow():
		return authorizer.DecisionAllow, d.Reason(), d.Error()
	case d.IsNoOpinion():
		return authorizer.DecisionNoOpinion, d.Reason(), d.Error()
	}
	return authorizer.DecisionDeny, d.Reason(), d.Error()
}

func (a *Authorizer) ask(ctx context.Context, decision authorizer.ConditionsAwareDecision, of *wire.Admission) (authorizer.ConditionsAwareDecision, error) {
	body, err := a.config.Dialect.AskAbout(decision, of)
	if err != nil {
		return authorizer.ConditionsAwareDecision{}, err
	}
	answer, err := a.conditions.post(ctx, "", body)
	if err != nil {
		return authorizer.ConditionsAwareDecision{}, err
	}
	return a.config.Dialect.ReadConditionsAnswer(answer, of.UID())
}

// unevaluated is the decision of admission on a failure.
func (a *Authorizer) unevaluated(decision authorizer.ConditionsAwareDecision, err error) (authorizer.Decision, string, error) {
	err = a.named(fmt.Errorf("the conditions are not evaluated: %w", err))
	if a.config.OnError == authorizer.DecisionNoOpinion && wire.FailureDecision(decision) == authorizer.DecisionNoOpinion {
		return authorizer.DecisionNoOpinion, "", err
	}
	return authorizer.DecisionDeny, "", err
}
