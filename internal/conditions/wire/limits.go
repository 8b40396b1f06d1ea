package wire

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// These are the limits of what a peer may send. The library limits the conditions of one authorizer to authorizer.MaxConditionsPerMap.
const (
	// maxDepth is how deep decisions may be in decisions.
	maxDepth = 8
	// maxConditions is the number of conditions in all.
	maxConditions = 1024
	// maxChainCondition is the longest condition of the first two texts in bytes, maxCondition that of the newest draft.
	maxChainCondition = 1 << 10
	maxCondition      = 10 << 10
	// maxDescription is the longest description in bytes.
	maxDescription = 1 << 10
)

// counter counts what one answer has.
type counter struct{ conditions int }

// condition returns a condition of a peer. at is its path.
func (n *counter) condition(at, id, kind, text, description string, longest int) (authorizer.Condition, error) {
	n.conditions++
	switch {
	case n.conditions > maxConditions:
		return nil, fmt.Errorf("%s: is one of more than %d conditions: send fewer", at, maxConditions)
	case len(text) > longest:
		return nil, fmt.Errorf("%s.condition: has %d bytes: send at most %d", at, len(text), longest)
	case len(description) > maxDescription:
		return nil, fmt.Errorf("%s.description: has %d bytes: send at most %d", at, len(description), maxDescription)
	}
	return authorizer.GenericCondition{ID: id, Type: kind, Condition: text, Description: description}, nil
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
