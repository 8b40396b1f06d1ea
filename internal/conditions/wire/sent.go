package wire

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// sent is a set of conditions as a peer sent it. Each of its conditions has it, so that it stays with the decision: the peer gets back what it
// sent, unmodified (KEP-5681).
type sent struct {
	dialect Dialect
	text    jsontext.Value
	// conditions is the number of conditions in text.
	conditions int
	// denies is true if the peer said that a failure of the evaluation denies.
	denies bool
	// failure is the error that the peer sent beside its conditions.
	failure error
}

// sentCondition is a condition of a peer.
type sentCondition struct {
	authorizer.GenericCondition
	of *sent
}

// asSent returns the text of a set if all of its conditions are those of one set that a peer sent in the dialect.
func (d Dialect) asSent(all authorizer.ConditionsMap) (jsontext.Value, bool) {
	var of *sent
	for c := range conditionsOfMap(all) {
		one, ok := c.(sentCondition)
		if !ok || of != nil && of != one.of {
			return nil, false
		}
		of = one.of
	}
	if of == nil || of.dialect != d || of.conditions != all.Length() {
		return nil, false
	}
	return of.text, true
}

// FailureDecision is the decision if the conditions of a decision cannot be evaluated: Deny if one of them may deny, or if the peer said so
// (failureMode), and NoOpinion otherwise.
func FailureDecision(d authorizer.ConditionsAwareDecision) authorizer.Decision {
	for c := range Conditions(d) {
		if one, ok := c.(sentCondition); ok && one.of.denies {
			return authorizer.DecisionDeny
		}
	}
	return d.FailureDecision()
}

// Failure returns the error that a peer sent beside the conditions of a decision, nil if there was none: an authorizer of its own failed, and
// might have allowed the request.
func Failure(d authorizer.ConditionsAwareDecision) error {
	for c := range Conditions(d) {
		if one, ok := c.(sentCondition); ok && one.of.failure != nil {
			return one.of.failure
		}
	}
	return nil
}

// Conditions are all conditions of a decision.
func Conditions(d authorizer.ConditionsAwareDecision) iter.Seq[authorizer.Condition] {
	return func(yield func(authorizer.Condition) bool) { eachCondition(d, yield) }
}

func eachCondition(d authorizer.ConditionsAwareDecision, yield func(authorizer.Condition) bool) bool {
	for c := range conditionsOfMap(d.ConditionsMap()) {
		if !yield(c) {
			return false
		}
	}
	for _, inner := range d.UnionedDecisions() {
		if !eachCondition(inner, yield) {
			return false
		}
	}
	return true
}

func conditionsOfMap(all authorizer.ConditionsMap) iter.Seq[authorizer.Condition] {
	return func(yield func(authorizer.Condition) bool) {
		for _, some := range []iter.Seq[authorizer.Condition]{all.DenyConditions(), all.NoOpinionConditions(), all.AllowConditions()} {
			for c := range some {
				if !yield(c) {
					return
				}
			}
		}
	}
}
