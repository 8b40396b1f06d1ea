package wire

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// These are the limits of what a peer may send. The library limits the conditions of one authorizer to authorizer.MaxConditionsPerMap.
const (
	// maxDepth is how deep decisions may be in decisions.
	maxDepth = 8
	// maxDecisions is the number of decisions in decisions in all. The library compares the name of each with all others.
	maxDecisions = 128
	// maxConditions is the number of conditions in all.
	maxConditions = 1024
	// maxChainCondition is the longest condition of the first two texts in bytes, maxCondition that of the newest draft.
	maxChainCondition = 1 << 10
	maxCondition      = 10 << 10
	// maxDescription is the longest description in bytes.
	maxDescription = 1 << 10
	// maxText is the longest reason or error of a peer in bytes. A longer one is shortened.
	maxText = 1 << 10
)

// counter counts what one answer has. failure is the error beside its conditions.
type counter struct {
	dialect               Dialect
	failure               error
	conditions, decisions int
}

// decision counts a decision in a decision. at is its path.
func (n *counter) decision(at string) error {
	if n.decisions++; n.decisions > maxDecisions {
		return fmt.Errorf("%s: is one of more than %d decisions: send fewer", at, maxDecisions)
	}
	return nil
}

// set returns a set of conditions as it was sent.
func (n *counter) set(text jsontext.Value, conditions int, failureMode string) *sent {
	return &sent{dialect: n.dialect, text: text, conditions: conditions, denies: failureMode == typeDeny, failure: n.failure}
}

// condition returns a condition of a set of a peer. at is its path.
func (n *counter) condition(of *sent, at, id, kind, text, description string, longest int) (authorizer.Condition, error) {
	n.conditions++
	switch {
	case n.conditions > maxConditions:
		return nil, fmt.Errorf("%s: is one of more than %d conditions: send fewer", at, maxConditions)
	case len(text) > longest:
		return nil, fmt.Errorf("%s.condition: has %d bytes: send at most %d", at, len(text), longest)
	case len(description) > maxDescription:
		return nil, fmt.Errorf("%s.description: has %d bytes: send at most %d", at, len(description), maxDescription)
	}
	return sentCondition{authorizer.GenericCondition{ID: id, Type: kind, Condition: text, Description: description}, of}, nil
}

// conditionsMap returns the decision of conditions, and an error if the library refuses them.
func conditionsMap(at string, deny, noOpinion, allow []authorizer.Condition) (authorizer.ConditionsAwareDecision, error) {
	out := authorizer.ConditionsAwareDecisionConditionsMap(deny, noOpinion, allow)
	if err := out.Error(); err != nil {
		return authorizer.ConditionsAwareDecision{}, fmt.Errorf("%s: %w", at, err)
	}
	return out, nil
}

// members collects the decisions of a chain.
type members struct {
	union authorizer.ConditionsAwareDecisionUnion
	names map[string]bool
}

// add adds the decision of a named authorizer.
func (m *members) add(at, name string, d authorizer.ConditionsAwareDecision) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%s.authorizerName %q: %s", at, name, problems[0])
	}
	if seen := m.names[name]; seen {
		return fmt.Errorf("%s.authorizerName %q: occurs twice: give each authorizer a name of its own", at, name)
	}
	if m.names == nil {
		m.names = map[string]bool{}
	}
	m.names[name] = true
	m.union.Add(name, d)
	return nil
}
