package wire

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// mergedText is the merged text of KEP-5681: spec.conditionalAuthorization.mode and status.conditionSetChain. A set has one type for all of its
// conditions, and may be a chain itself. A set of no opinion is left out.
var mergedText = codec{
	field: "conditionalAuthorization", ask: askForMode(), handles: handlesMode,
	encode: func(d authorizer.ConditionsAwareDecision) (any, error) {
		return setsOf(d, 0)
	},
	decode: func(value jsontext.Value, n *counter) (authorizer.ConditionsAwareDecision, error) {
		return readChain("", value, n, 0)
	},
	// The text names the fields of the request in admission, and gives them no place: they are beside the conditions.
	wrap: func(value any, admission jsontext.Value) (map[string]any, error) {
		return beside(admission, map[string]any{string(ConditionSetChain): value})
	},
	unwrap: func(request map[string]jsontext.Value) (string, jsontext.Value, jsontext.Value, error) {
		rest, err := without(request, string(ConditionSetChain))
		return string(ConditionSetChain), request[string(ConditionSetChain)], rest, err
	},
}

type mergedSet struct {
	Allowed        bool             `json:"allowed,omitzero"`
	Denied         bool             `json:"denied,omitzero"`
	FailureMode    string           `json:"failureMode,omitempty"`
	AuthorizerName string           `json:"authorizerName"`
	ConditionsType string           `json:"conditionsType,omitempty"`
	Conditions     []chainCondition `json:"conditions,omitempty"`
	// Chain has sets.
	Chain jsontext.Value `json:"conditionSetChain,omitempty"`

	// sent is the set as a peer sent it, nil for a set that fieldperm makes.
	sent jsontext.Value
}

// MarshalJSON returns the set, as it was sent if a peer sent it.
func (s mergedSet) MarshalJSON() ([]byte, error) {
	if s.sent != nil {
		return s.sent, nil
	}
	type plain mergedSet
	return json.Marshal(plain(s))
}

// setsOf returns a decision as a chain.
func setsOf(d authorizer.ConditionsAwareDecision, depth int) ([]mergedSet, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the decision is deeper than %d chains: flatten it", maxDepth)
	}
	if !d.IsUnion() {
		set, err := setOf(soleAuthorizer, d, depth)
		return []mergedSet{set}, err
	}
	var out []mergedSet
	for name, inner := range d.UnionedDecisions() {
		if inner.IsNoOpinion() {
			continue
		}
		set, err := setOf(name, inner, depth)
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	return out, nil
}

func setOf(name string, d authorizer.ConditionsAwareDecision, depth int) (mergedSet, error) {
	out := mergedSet{AuthorizerName: name, Allowed: d.IsAllow(), Denied: d.IsDeny()}
	var err error
	switch {
	case d.IsUnion():
		var sets []mergedSet
		if sets, err = setsOf(d, depth+1); err == nil {
			out.Chain, err = json.Marshal(sets)
		}
	case d.IsConditionsMap():
		if sent, ok := ConditionSetChain.asSent(d.ConditionsMap()); ok {
			out.sent = sent
			return out, nil
		}
		out.FailureMode = failureModeOf(d)
		out.Conditions, err = writeChain(d.ConditionsMap())
		for i := range out.Conditions {
			c := &out.Conditions[i]
			switch {
			case i == 0:
				out.ConditionsType = c.Type
			case c.Type != out.ConditionsType:
				return out, fmt.Errorf("authorizer %q has conditions of the types %q and %q: the dialect %s has one type for all", name, out.ConditionsType, c.Type, ConditionSetChain)
			}
			c.Type = ""
		}
	}
	return out, err
}

func readChain(at string, value jsontext.Value, n *counter, depth int) (authorizer.ConditionsAwareDecision, error) {
	if depth > maxDepth {
		return authorizer.ConditionsAwareDecision{}, fmt.Errorf("%s: is deeper than %d chains: flatten it", at, maxDepth)
	}
	return readSets(at, value, n, func(at string, text jsontext.Value) (string, authorizer.ConditionsAwareDecision, error) {
		var s mergedSet
		if err := strict(text, &s); err != nil {
			return "", authorizer.ConditionsAwareDecision{}, fmt.Errorf("%s%w", at, err)
		}
		d, err := s.read(at, text, n, depth)
		return s.AuthorizerName, d, err
	})
}

func (s *mergedSet) read(at string, text jsontext.Value, n *counter, depth int) (authorizer.ConditionsAwareDecision, error) {
	if !has(s.Chain) {
		return readSet(at, text, s.Allowed, s.Denied, s.FailureMode, s.Conditions, &s.ConditionsType, n)
	}
	if s.Allowed || s.Denied || s.Conditions != nil || s.ConditionsType != "" || s.FailureMode != "" {
		return authorizer.ConditionsAwareDecision{}, fmt.Errorf("%s: has more than conditionSetChain: send one of allowed, denied, conditions and conditionSetChain", at)
	}
	return readChain(at+".conditionSetChain", s.Chain, n, depth+1)
}
