package wire

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/shorten"
)

// Dialect is the form in which a peer asks for conditions and returns them. The zero Dialect is that of peers without conditions.
type Dialect string

// These are the dialects, by the field of the status that has the conditions.
const (
	// None neither asks for conditions nor returns them.
	None Dialect = ""
	// ConditionsChain is the first text of KEP-5681: status.conditionsChain, with the type at each condition.
	ConditionsChain Dialect = "conditionsChain"
	// ConditionSetChain is the merged text: status.conditionSetChain, with one type for a set and sets in sets.
	ConditionSetChain Dialect = "conditionSetChain"
	// ConditionalDecision is the newest draft: status.conditionalDecision, the decisions of k8s.io/apiserver.
	ConditionalDecision Dialect = "conditionalDecision"
)

// All returns the dialects with conditions, the oldest first.
func All() []Dialect { return []Dialect{ConditionsChain, ConditionSetChain, ConditionalDecision} }

// codec is what is different in a dialect.
type codec struct {
	// field of the spec by which a peer asks, and its value when fieldperm asks.
	field string
	ask   any
	// handles reports whether the value of the field asks for conditions.
	handles func(value jsontext.Value) (bool, error)
	// encode returns the value of the field of the status. It returns an error if the dialect cannot express the decision.
	encode func(d authorizer.ConditionsAwareDecision) (any, error)
	decode func(value jsontext.Value, n *counter) (authorizer.ConditionsAwareDecision, error)
	// wrap returns the request of an AuthorizationConditionsReview. value is from encode, admission is the request in admission.
	wrap func(value any, admission jsontext.Value) (map[string]any, error)
	// unwrap returns the parts of such a request: conditions is for decode. at is the place of the conditions.
	unwrap func(request map[string]jsontext.Value) (at string, conditions, admission jsontext.Value, err error)
}

// codecOf returns that of a dialect, and false for None.
func codecOf(d Dialect) (codec, bool) {
	switch d {
	case ConditionsChain:
		return firstText, true
	case ConditionSetChain:
		return mergedText, true
	case ConditionalDecision:
		return newestDraft, true
	case None:
	}
	return codec{}, false
}

// Parse reads a dialect from a configuration. It does not accept None.
func Parse(name string) (Dialect, error) {
	if _, ok := codecOf(Dialect(name)); !ok {
		return None, fmt.Errorf("dialect %q is not known: use %s, %s or %s", name, ConditionsChain, ConditionSetChain, ConditionalDecision)
	}
	return Dialect(name), nil
}

// maxBytes is the largest review, in bytes. Conditions of the largest size and number are within it.
const maxBytes = 4 << 20

// Handles reports whether the spec of a SubjectAccessReview, as JSON, asks for conditions in the dialect. A spec that asks in another dialect
// does not.
func (d Dialect) Handles(spec []byte) (bool, error) {
	c, ok := codecOf(d)
	if !ok {
		return false, nil
	}
	fields, err := object("spec", spec)
	if err != nil || fields[c.field] == nil {
		return false, err
	}
	return c.handles(fields[c.field])
}

// Ask returns a SubjectAccessReview as JSON that asks for conditions in the dialect.
func (d Dialect) Ask(spec *authorizationv1.SubjectAccessReviewSpec) ([]byte, error) {
	review := authorizationv1.SubjectAccessReview{Spec: *spec}
	review.APIVersion, review.Kind = reviewVersion, reviewKind
	text, err := json.Marshal(review, json.Deterministic(true))
	c, ok := codecOf(d)
	if err != nil || !ok {
		return text, err
	}
	return with(text, "spec", c.field, c.ask)
}

// Asked returns the spec in the answer to Ask, and nil if the authorizer left it out.
func Asked(answer []byte) (*authorizationv1.SubjectAccessReviewSpec, error) {
	if len(answer) > maxBytes {
		return nil, fmt.Errorf("review: has %d bytes: send at most %d", len(answer), maxBytes)
	}
	review, err := object("review", answer)
	if err != nil || !has(review["spec"]) {
		return nil, err
	}
	spec := &authorizationv1.SubjectAccessReviewSpec{}
	if err := json.Unmarshal(review["spec"], spec); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	if reflect.ValueOf(*spec).IsZero() {
		return nil, nil
	}
	return spec, nil
}

// Status returns the status of a SubjectAccessReview, as JSON. handles is the result of Handles. If the peer does not handle conditions, or if
// the dialect cannot express the decision, a conditional decision becomes NoOpinion, or Deny if it may deny.
func (d Dialect) Status(decision authorizer.ConditionsAwareDecision, handles bool) ([]byte, error) {
	c, ok := codecOf(d)
	if decision.IsUnconditional() || !ok || !handles {
		return json.Marshal(unconditional(decision, nil))
	}
	value, err := c.encode(decision)
	if err != nil {
		return json.Marshal(unconditional(decision, err))
	}
	status := map[string]any{"allowed": false, string(d): value}
	return json.Marshal(status, json.Deterministic(true))
}

// unconditional returns a status without conditions.
func unconditional(d authorizer.ConditionsAwareDecision, cause error) authorizationv1.SubjectAccessReviewStatus {
	out := authorizationv1.SubjectAccessReviewStatus{Allowed: d.IsAllow(), Denied: d.IsDeny(), Reason: d.Reason()}
	if !d.IsUnconditional() {
		out.Denied = d.FailureDecision() == authorizer.DecisionDeny
		out.Reason = "the decision depends on conditions, which the caller does not handle"
	}
	if err := errors.Join(d.Error(), cause); err != nil {
		out.EvaluationError = err.Error()
	}
	return out
}

// ReadStatus reads the answer to Ask: a SubjectAccessReview as JSON. Unknown fields are ignored, except in conditions. An error means that
// the answer is not of the dialect or breaks its rules: the failure policy for the peer applies. The decision beside an error is Deny.
func (d Dialect) ReadStatus(body []byte) (authorizer.ConditionsAwareDecision, error) {
	none := authorizer.ConditionsAwareDecision{}
	if len(body) > maxBytes {
		return none, fmt.Errorf("review: has %d bytes: send at most %d", len(body), maxBytes)
	}
	review, err := object("review", body)
	if err != nil {
		return none, err
	}
	if err := isOf(review, reviewVersion, reviewKind); err != nil {
		return none, err
	}
	status, err := object("status", review["status"])
	if err != nil {
		return none, err
	}
	plain, err := readPlain(status)
	if err != nil {
		return none, err
	}
	var conditional jsontext.Value
	for _, other := range All() {
		value := status[string(other)]
		switch {
		case !has(value):
		case other != d:
			return none, fmt.Errorf("status: has %s, and %q was asked for: configure the dialect of this authorizer", other, string(d))
		default:
			conditional = value
		}
	}
	if conditional == nil {
		if !has(status["allowed"]) && !has(status["denied"]) {
			return none, errors.New("status: has no field allowed: send true or false")
		}
		return plain, nil
	}
	if !plain.IsNoOpinion() {
		return none, fmt.Errorf("status: has allowed or denied beside %s: send one of them", d)
	}
	c, _ := codecOf(d)
	out, err := c.decode(conditional, &counter{dialect: d, failure: plain.Error()})
	if err != nil {
		return none, fmt.Errorf("status.%s%w", d, err)
	}
	return out, nil
}

// has reports whether a member is there and not null.
func has(value jsontext.Value) bool { return value != nil && value.Kind() != 'n' }

// readPlain reads the fields of a status without conditions.
func readPlain(status map[string]jsontext.Value) (authorizer.ConditionsAwareDecision, error) {
	var plain struct {
		Allowed, Denied         bool
		Reason, EvaluationError string
	}
	for name, into := range map[string]any{"allowed": &plain.Allowed, "denied": &plain.Denied, "reason": &plain.Reason, "evaluationError": &plain.EvaluationError} {
		if value := status[name]; value != nil {
			if err := json.Unmarshal(value, into); err != nil {
				return authorizer.ConditionsAwareDecision{}, fmt.Errorf("status.%s: %w", name, err)
			}
		}
	}
	var failure error
	if plain.EvaluationError != "" {
		failure = errors.New(shorten.Within(plain.EvaluationError, maxText))
	}
	plain.Reason = shorten.Within(plain.Reason, maxText)
	switch {
	case plain.Allowed && plain.Denied:
		return authorizer.ConditionsAwareDecision{}, errors.New("status: is allowed and denied: send one of them")
	case plain.Allowed:
		return authorizer.ConditionsAwareDecisionAllow(plain.Reason, failure), nil
	case plain.Denied:
		return authorizer.ConditionsAwareDecisionDeny(plain.Reason, failure), nil
	}
	return authorizer.ConditionsAwareDecisionNoOpinion(plain.Reason, failure), nil
}

// object reads the members of an object. Names may occur once, and are case-sensitive.
func object(what string, text []byte) (map[string]jsontext.Value, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("%s: is missing: send the whole review", what)
	}
	var out map[string]jsontext.Value
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if out == nil {
		return nil, fmt.Errorf("%s: is null: send an object", what)
	}
	return out, nil
}

// with returns an object with one more member in the object of a member.
func with(text []byte, of, name string, value any) ([]byte, error) {
	var whole map[string]jsontext.Value
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	var inner map[string]jsontext.Value
	if err := json.Unmarshal(whole[of], &inner); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	inner[name] = encoded
	if whole[of], err = json.Marshal(inner, json.Deterministic(true)); err != nil {
		return nil, err
	}
	return json.Marshal(whole, json.Deterministic(true))
}

// strict reads a part with conditions: fields that are not known are errors, because they may limit what a condition means.
func strict(value jsontext.Value, into any) error {
	if err := json.Unmarshal(value, into, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf(": %w", err)
	}
	return nil
}

// modes are the ways in which the first two texts ask for conditions.
var modes = []string{"HumanReadable", "Optimized"}

// handlesMode reads conditionalAuthorization of the first two texts.
func handlesMode(value jsontext.Value) (bool, error) {
	var config *struct {
		Mode string `json:"mode"`
	}
	if err := json.Unmarshal(value, &config); err != nil {
		return false, fmt.Errorf("spec.conditionalAuthorization: %w", err)
	}
	if config == nil || config.Mode == "" {
		return false, nil
	}
	if !slices.Contains(modes, config.Mode) {
		return false, fmt.Errorf("spec.conditionalAuthorization.mode %q is not known: use %s", config.Mode, strings.Join(modes, " or "))
	}
	return true, nil
}

func askForMode() any { return map[string]string{"mode": modes[0]} }
