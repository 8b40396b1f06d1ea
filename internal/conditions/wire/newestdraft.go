package wire

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/shorten"
)

// newestDraft is the API of kubernetes/kubernetes#137633: spec.authorizationOptions.handledDecisionTypes and status.conditionalDecision.
var newestDraft = codec{
	field:   "authorizationOptions",
	ask:     map[string][]string{"handledDecisionTypes": {typeAllow, typeDeny, typeNoOpinion, typeMap, typeUnion}},
	handles: handlesTypes,
	encode: func(d authorizer.ConditionsAwareDecision) (any, error) {
		return draftOf("", d, 0)
	},
	decode: func(value jsontext.Value, n *counter) (authorizer.ConditionsAwareDecision, error) {
		var d draftDecision
		if err := strict(value, &d); err != nil {
			return authorizer.ConditionsAwareDecision{}, err
		}
		if d.Type != typeMap && d.Type != typeUnion {
			return authorizer.ConditionsAwareDecision{}, fmt.Errorf(".type %q: is not conditional: send %s or %s, and allowed or denied for others", d.Type, typeMap, typeUnion)
		}
		return d.read("", n, 0)
	},
	wrap: func(value any, admission jsontext.Value) (map[string]any, error) {
		return map[string]any{"decision": value, "admissionRequest": admission}, nil
	},
	unwrap: func(request map[string]jsontext.Value) (string, jsontext.Value, jsontext.Value, error) {
		return "decision", request["decision"], request["admissionRequest"], nil
	},
}

const (
	typeAllow     = "Allow"
	typeDeny      = "Deny"
	typeNoOpinion = "NoOpinion"
	typeMap       = "ConditionsMap"
	typeUnion     = "Union"
)

type draftDecision struct {
	Type      string              `json:"type"`
	Deny      *draftUnconditional `json:"deny,omitzero"`
	NoOpinion *draftUnconditional `json:"noOpinion,omitzero"`
	Allow     *draftUnconditional `json:"allow,omitzero"`
	// Map has a draftMap.
	Map   jsontext.Value `json:"conditionsMap,omitzero"`
	Union []draftNamed   `json:"union,omitempty"`
}

type draftUnconditional struct {
	Reason          string `json:"reason,omitempty"`
	EvaluationError string `json:"evaluationError,omitempty"`
}

type draftMap struct {
	Deny      []draftCondition `json:"denyConditions,omitempty"`
	NoOpinion []draftCondition `json:"noOpinionConditions,omitempty"`
	Allow     []draftCondition `json:"allowConditions,omitempty"`
}

type draftCondition struct {
	ID          string `json:"id"`
	Condition   string `json:"condition,omitempty"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
}

type draftNamed struct {
	AuthorizerName string        `json:"authorizerName"`
	Decision       draftDecision `json:"decision"`
}

// handlesTypes reads authorizationOptions. Types that are not known are ignored, as the draft says.
func handlesTypes(value jsontext.Value) (bool, error) {
	var options *struct {
		Types []string `json:"handledDecisionTypes"`
	}
	if err := json.Unmarshal(value, &options); err != nil {
		return false, fmt.Errorf("spec.authorizationOptions: %w", err)
	}
	if options == nil {
		return false, nil
	}
	for _, name := range []string{typeAllow, typeDeny, typeNoOpinion} {
		if !slices.Contains(options.Types, name) {
			return false, fmt.Errorf("spec.authorizationOptions.handledDecisionTypes: lacks %q: every caller handles it", name)
		}
	}
	return slices.Contains(options.Types, typeMap) && slices.Contains(options.Types, typeUnion), nil
}

// draftOf returns the form of a decision. at is its path in a status.
func draftOf(at string, d authorizer.ConditionsAwareDecision, depth int) (*draftDecision, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: is deeper than %d decisions: flatten the chain", at, maxDepth)
	}
	plain := &draftUnconditional{Reason: d.Reason()}
	if err := d.Error(); err != nil {
		plain.EvaluationError = err.Error()
	}
	switch {
	case d.IsAllow():
		return &draftDecision{Type: typeAllow, Allow: plain}, nil
	case d.IsNoOpinion():
		return &draftDecision{Type: typeNoOpinion, NoOpinion: plain}, nil
	case d.IsConditionsMap():
		text, err := draftMapOf(at, d.ConditionsMap())
		return &draftDecision{Type: typeMap, Map: text}, err
	case d.IsUnion():
		out := &draftDecision{Type: typeUnion}
		for name, inner := range d.UnionedDecisions() {
			of, err := draftOf(at+".union."+name, inner, depth+1)
			if err != nil {
				return nil, err
			}
			out.Union = append(out.Union, draftNamed{AuthorizerName: name, Decision: *of})
		}
		return out, nil
	}
	return &draftDecision{Type: typeDeny, Deny: plain}, nil
}

// draftMapOf returns the form of conditions, as it was sent if a peer sent it.
func draftMapOf(at string, all authorizer.ConditionsMap) (jsontext.Value, error) {
	if sent, ok := ConditionalDecision.asSent(all); ok {
		return sent, nil
	}
	var out draftMap
	if err := errors.Join(writeDraft(at, &out.Deny, all.DenyConditions()), writeDraft(at, &out.NoOpinion, all.NoOpinionConditions()), writeDraft(at, &out.Allow, all.AllowConditions())); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func writeDraft(at string, into *[]draftCondition, from iter.Seq[authorizer.Condition]) error {
	for c := range from {
		if len(c.GetCondition()) > maxCondition || len(c.GetDescription()) > maxDescription {
			return fmt.Errorf("%s: condition %q is longer than %d bytes, or its description than %d: shorten it", at, c.GetID(), maxCondition, maxDescription)
		}
		*into = append(*into, draftCondition{ID: c.GetID(), Condition: c.GetCondition(), Type: c.GetType(), Description: c.GetDescription()})
	}
	return nil
}

// read returns the decision. Exactly the member of the type is set.
func (d *draftDecision) read(at string, n *counter, depth int) (authorizer.ConditionsAwareDecision, error) {
	var none authorizer.ConditionsAwareDecision
	if depth > maxDepth {
		return none, fmt.Errorf("%s: is deeper than %d decisions: flatten the chain", at, maxDepth)
	}
	set := map[string]bool{typeDeny: d.Deny != nil, typeNoOpinion: d.NoOpinion != nil, typeAllow: d.Allow != nil, typeMap: has(d.Map), typeUnion: len(d.Union) > 0}
	for name, is := range set {
		if is != (name == d.Type) {
			return none, fmt.Errorf("%s.type %q: the member of type %s is set: %t: set exactly the member of the type", at, d.Type, name, is)
		}
	}
	switch d.Type {
	case typeDeny:
		return authorizer.ConditionsAwareDecisionDeny(d.Deny.reason(), d.Deny.failure()), nil
	case typeNoOpinion:
		return authorizer.ConditionsAwareDecisionNoOpinion(d.NoOpinion.reason(), d.NoOpinion.failure()), nil
	case typeAllow:
		return authorizer.ConditionsAwareDecisionAllow(d.Allow.reason(), d.Allow.failure()), nil
	case typeMap:
		return readDraftMap(at+".conditionsMap", d.Map, n)
	case typeUnion:
		var out members
		for i := range d.Union {
			path := fmt.Sprintf("%s.union[%d]", at, i)
			if err := n.decision(path); err != nil {
				return none, err
			}
			inner, err := d.Union[i].Decision.read(path+".decision", n, depth+1)
			if err != nil {
				return none, err
			}
			if err := out.add(path, d.Union[i].AuthorizerName, inner); err != nil {
				return none, err
			}
		}
		return out.union.ToDecision(), nil
	}
	return none, fmt.Errorf("%s.type %q is not known: use %s, %s, %s, %s or %s", at, d.Type, typeAllow, typeDeny, typeNoOpinion, typeMap, typeUnion)
}

func (u *draftUnconditional) failure() error {
	if u.EvaluationError == "" {
		return nil
	}
	return errors.New(shorten.Within(u.EvaluationError, maxText))
}

func (u *draftUnconditional) reason() string { return shorten.Within(u.Reason, maxText) }

func readDraftMap(at string, text jsontext.Value, n *counter) (authorizer.ConditionsAwareDecision, error) {
	var none authorizer.ConditionsAwareDecision
	var m draftMap
	if err := strict(text, &m); err != nil {
		return none, fmt.Errorf("%s%w", at, err)
	}
	if len(m.Deny)+len(m.Allow) == 0 {
		return none, fmt.Errorf("%s: has no denyConditions and no allowConditions: send NoOpinion", at)
	}
	of := n.set(text, len(m.Deny)+len(m.NoOpinion)+len(m.Allow), "")
	var out [3][]authorizer.Condition
	for i, list := range [3][]draftCondition{m.Deny, m.NoOpinion, m.Allow} {
		for j, c := range list {
			condition, err := n.condition(of, fmt.Sprintf("%s.%s[%d]", at, [3]string{"denyConditions", "noOpinionConditions", "allowConditions"}[i], j), c.ID, c.Type, c.Condition, c.Description, maxCondition)
			if err != nil {
				return none, err
			}
			out[i] = append(out[i], condition)
		}
	}
	return conditionsMap(at, out[0], out[1], out[2])
}
