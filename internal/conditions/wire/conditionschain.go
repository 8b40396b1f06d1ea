package wire

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// firstText is the first text of KEP-5681: spec.conditionalAuthorization.mode and status.conditionsChain. Each condition has its type. A set is
// never a chain. A set of no opinion is left out.
var firstText = codec{
	field: "conditionalAuthorization", ask: askForMode(), handles: handlesMode,
	encode: func(d authorizer.ConditionsAwareDecision) (any, error) {
		if !d.IsUnion() {
			set, err := firstSetOf(soleAuthorizer, d)
			return []firstSet{set}, err
		}
		var out []firstSet
		for name, inner := range d.UnionedDecisions() {
			if inner.IsNoOpinion() {
				continue
			}
			set, err := firstSetOf(name, inner)
			if err != nil {
				return nil, err
			}
			out = append(out, set)
		}
		return out, nil
	},
	decode: func(value jsontext.Value, n *counter) (authorizer.ConditionsAwareDecision, error) {
		return readSets("", value, n, func(at string, text jsontext.Value) (string, authorizer.ConditionsAwareDecision, error) {
			var s firstSet
			if err := strict(text, &s); err != nil {
				return "", authorizer.ConditionsAwareDecision{}, fmt.Errorf("%s%w", at, err)
			}
			d, err := readSet(at, text, s.Allowed, s.Denied, s.FailureMode, s.Conditions, nil, n)
			return s.AuthorizerName, d, err
		})
	},
	wrap: func(value any, admission jsontext.Value) (map[string]any, error) {
		sets, _ := value.([]firstSet)
		if len(sets) != 1 {
			return nil, fmt.Errorf("the decision has %d sets: the dialect %s asks about one authorizer at a time", len(sets), ConditionsChain)
		}
		return beside(admission, map[string]any{"authorizerName": sets[0].AuthorizerName, "conditionSet": sets[0]})
	},
	unwrap: func(request map[string]jsontext.Value) (string, jsontext.Value, jsontext.Value, error) {
		set, err := object("conditionSet", request["conditionSet"])
		if err != nil {
			return "", nil, nil, fmt.Errorf(".%w", err)
		}
		var of, by string
		if json.Unmarshal(request["authorizerName"], &of) != nil || json.Unmarshal(set["authorizerName"], &by) != nil || of != by {
			return "", nil, nil, errors.New(".authorizerName: is not that of conditionSet: send the set as it was returned")
		}
		rest, err := without(request, "authorizerName", "conditionSet")
		return "conditionSet", slices.Concat(jsontext.Value("["), request["conditionSet"], jsontext.Value("]")), rest, err
	},
}

// soleAuthorizer is the name of the authorizer of a decision that is no chain.
const soleAuthorizer = "authorizer"

type firstSet struct {
	Allowed        bool             `json:"allowed,omitzero"`
	Denied         bool             `json:"denied,omitzero"`
	FailureMode    string           `json:"failureMode,omitempty"`
	AuthorizerName string           `json:"authorizerName"`
	Conditions     []chainCondition `json:"conditions,omitempty"`

	// sent is the set as a peer sent it, nil for a set that fieldperm makes.
	sent jsontext.Value
}

// MarshalJSON returns the set, as it was sent if a peer sent it.
func (s firstSet) MarshalJSON() ([]byte, error) {
	if s.sent != nil {
		return s.sent, nil
	}
	type plain firstSet
	return json.Marshal(plain(s))
}

// chainCondition is a condition of the first two texts. Only the first one has a type here.
type chainCondition struct {
	ID          string `json:"id"`
	Effect      string `json:"effect"`
	Type        string `json:"type,omitempty"`
	Condition   string `json:"condition"`
	Description string `json:"description,omitempty"`
}

func firstSetOf(name string, d authorizer.ConditionsAwareDecision) (firstSet, error) {
	out := firstSet{AuthorizerName: name, Allowed: d.IsAllow(), Denied: d.IsDeny()}
	if d.IsUnion() {
		return out, fmt.Errorf("authorizer %q is a chain in a chain: the dialect %s cannot express it", name, ConditionsChain)
	}
	var err error
	if d.IsConditionsMap() {
		if sent, ok := ConditionsChain.asSent(d.ConditionsMap()); ok {
			out.sent = sent
			return out, nil
		}
		out.FailureMode = failureModeOf(d)
		out.Conditions, err = writeChain(d.ConditionsMap())
	}
	return out, err
}

// failureModeOf returns the failureMode of conditions that fieldperm makes: Deny if one may deny, "" for the default of the caller.
func failureModeOf(d authorizer.ConditionsAwareDecision) string {
	if d.FailureDecision() == authorizer.DecisionDeny {
		return typeDeny
	}
	return ""
}

// writeChain returns the conditions of a set, by effect.
func writeChain(all authorizer.ConditionsMap) ([]chainCondition, error) {
	var out []chainCondition
	var failure error
	add := func(effect string) func(authorizer.Condition) bool {
		return func(c authorizer.Condition) bool {
			if len(c.GetCondition()) > maxChainCondition || len(c.GetDescription()) > maxDescription {
				failure = fmt.Errorf("condition %q is longer than %d bytes, or its description than %d: shorten it", c.GetID(), maxChainCondition, maxDescription)
				return false
			}
			out = append(out, chainCondition{ID: c.GetID(), Effect: effect, Type: c.GetType(), Condition: c.GetCondition(), Description: c.GetDescription()})
			return true
		}
	}
	all.DenyConditions()(add(typeDeny))
	all.NoOpinionConditions()(add(typeNoOpinion))
	all.AllowConditions()(add(typeAllow))
	return out, failure
}

// readSets returns the decision of a list of sets. read returns the name of the authorizer of a set, and its decision.
func readSets(at string, value jsontext.Value, n *counter, read func(at string, set jsontext.Value) (string, authorizer.ConditionsAwareDecision, error)) (authorizer.ConditionsAwareDecision, error) {
	var none authorizer.ConditionsAwareDecision
	var sets []jsontext.Value
	if err := strict(value, &sets); err != nil {
		return none, fmt.Errorf("%s%w", at, err)
	}
	if len(sets) == 0 {
		return none, fmt.Errorf("%s: is empty: leave it out for no opinion", at)
	}
	var out members
	for i, text := range sets {
		path := fmt.Sprintf("%s[%d]", at, i)
		if err := n.decision(path); err != nil {
			return none, err
		}
		name, inner, err := read(path, text)
		if err != nil {
			return none, err
		}
		if err := out.add(path, name, inner); err != nil {
			return none, err
		}
	}
	return out.union.ToDecision(), nil
}

// readSet returns the decision of a set. oneType is the type of all conditions in the merged text, nil in the first one.
func readSet(at string, text jsontext.Value, allowed, denied bool, failureMode string, conditions []chainCondition, oneType *string, n *counter) (authorizer.ConditionsAwareDecision, error) {
	var none authorizer.ConditionsAwareDecision
	has := 0
	for _, is := range []bool{allowed, denied, conditions != nil} {
		if is {
			has++
		}
	}
	if has != 1 {
		return none, fmt.Errorf("%s: has %d of allowed, denied and conditions: send one of them", at, has)
	}
	if failureMode != "" && failureMode != typeDeny && failureMode != typeNoOpinion {
		return none, fmt.Errorf("%s.failureMode %q is not known: use %s or %s", at, failureMode, typeDeny, typeNoOpinion)
	}
	switch {
	case allowed:
		return authorizer.ConditionsAwareDecisionAllow("", nil), nil
	case denied:
		return authorizer.ConditionsAwareDecisionDeny("", nil), nil
	}
	var deny, noOpinion, allow []authorizer.Condition
	of := n.set(text, len(conditions), failureMode)
	for i, c := range conditions {
		path, kind := fmt.Sprintf("%s.conditions[%d]", at, i), c.Type
		if oneType != nil {
			if c.Type != "" {
				return none, fmt.Errorf("%s.type: is not in the dialect %s: send conditionsType", path, ConditionSetChain)
			}
			kind = *oneType
		}
		condition, err := n.condition(of, path, c.ID, kind, c.Condition, c.Description, maxChainCondition)
		if err != nil {
			return none, err
		}
		switch c.Effect {
		case typeDeny:
			deny = append(deny, condition)
		case typeNoOpinion:
			noOpinion = append(noOpinion, condition)
		case typeAllow:
			allow = append(allow, condition)
		default:
			return none, fmt.Errorf("%s.effect %q is not known: use %s, %s or %s", path, c.Effect, typeAllow, typeDeny, typeNoOpinion)
		}
	}
	return conditionsMap(at, deny, noOpinion, allow)
}
