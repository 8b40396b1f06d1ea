package wire

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	conditionsReviewKind    = "AuthorizationConditionsReview"
	conditionsReviewVersion = "authorization.k8s.io/v1alpha1"
)

var errNoDialect = errors.New("dialect: is not configured: configure the dialect of this peer")

// ConditionsRequest is the question of an AuthorizationConditionsReview: what does a conditional decision become for a request in admission?
type ConditionsRequest struct {
	Decision authorizer.ConditionsAwareDecision
	// Admission has the objects. In the newest draft the answer repeats its UID.
	Admission *admissionv1.AdmissionRequest
}

// Admission is a request in admission, encoded once for all reviews about it. It is immutable.
type Admission struct {
	uid  types.UID
	text jsontext.Value
}

// NewAdmission encodes a request.
func NewAdmission(of *admissionv1.AdmissionRequest) (*Admission, error) {
	if of == nil || of.UID == "" {
		return nil, errors.New("admission request: is missing, or has no uid: give the request that admission sees")
	}
	text, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("admission request: %w", err)
	}
	return &Admission{uid: of.UID, text: text}, nil
}

// UID returns the uid of the request.
func (a *Admission) UID() types.UID { return a.uid }

// AskConditions is AskAbout for one review.
func (d Dialect) AskConditions(r ConditionsRequest) ([]byte, error) {
	of, err := NewAdmission(r.Admission)
	if err != nil {
		return nil, err
	}
	return d.AskAbout(r.Decision, of)
}

// AskAbout returns an AuthorizationConditionsReview as JSON. Conditions that a peer sent are sent back unmodified. It returns an error for an
// unconditional decision, and for one that the dialect cannot express: a review of the first text has the conditions of one authorizer.
func (d Dialect) AskAbout(decision authorizer.ConditionsAwareDecision, of *Admission) ([]byte, error) {
	c, ok := codecOf(d)
	switch {
	case !ok:
		return nil, errNoDialect
	case decision.IsUnconditional():
		return nil, errors.New("decision: has no conditions: use it as it is")
	}
	value, err := c.encode(decision)
	if err != nil {
		return nil, err
	}
	request, err := c.wrap(value, of.text)
	if err != nil {
		return nil, err
	}
	return conditionsReview("request", request)
}

// ReadConditionsRequest reads what AskConditions writes. Unknown fields are ignored, except in conditions.
func (d Dialect) ReadConditionsRequest(body []byte) (ConditionsRequest, error) {
	c, ok := codecOf(d)
	if !ok {
		return ConditionsRequest{}, errNoDialect
	}
	request, err := partOfConditionsReview(body, "request")
	if err != nil {
		return ConditionsRequest{}, err
	}
	at, conditions, text, err := c.unwrap(request)
	if err != nil {
		return ConditionsRequest{}, fmt.Errorf("request%w", err)
	}
	if !has(conditions) {
		return ConditionsRequest{}, fmt.Errorf("request.%s: is missing: send the conditions in the dialect %s", at, d)
	}
	if len(conditions) > maxBytes {
		return ConditionsRequest{}, fmt.Errorf("request.%s: has %d bytes: send at most %d", at, len(conditions), maxBytes)
	}
	decision, err := c.decode(conditions, &counter{dialect: d})
	if err != nil {
		return ConditionsRequest{}, fmt.Errorf("request.%s%w", at, err)
	}
	if decision.IsUnconditional() {
		return ConditionsRequest{}, fmt.Errorf("request.%s: has no conditions: send those that the authorizer returned", at)
	}
	admission := &admissionv1.AdmissionRequest{}
	if has(text) {
		if err := json.Unmarshal(text, admission); err != nil {
			return ConditionsRequest{}, fmt.Errorf("request: of admission: %w", err)
		}
	}
	if admission.UID == "" || admission.Operation == "" || admission.Resource.Resource == "" {
		return ConditionsRequest{}, errors.New("request: lacks uid, operation or resource of the request in admission: send all of its fields")
	}
	return ConditionsRequest{Decision: decision, Admission: admission}, nil
}

// AnswerConditions returns the answer to a review as JSON. uid is that of the request in admission. A decision that still has conditions
// becomes NoOpinion, or Deny if it may deny.
func (d Dialect) AnswerConditions(uid types.UID, decision authorizer.ConditionsAwareDecision) ([]byte, error) {
	if _, ok := codecOf(d); !ok {
		return nil, errNoDialect
	}
	plain := unconditional(decision, nil)
	if d != ConditionalDecision {
		return conditionsReview("response", plain)
	}
	folded := authorizer.ConditionsAwareDecisionNoOpinion(plain.Reason, decision.Error())
	switch {
	case plain.Allowed:
		folded = authorizer.ConditionsAwareDecisionAllow(plain.Reason, decision.Error())
	case plain.Denied:
		folded = authorizer.ConditionsAwareDecisionDeny(plain.Reason, decision.Error())
	}
	value, err := draftOf("", folded, 0)
	if err != nil {
		return nil, err
	}
	return conditionsReview("response", map[string]any{"uid": uid, "decision": value})
}

// ReadConditionsAnswer reads the answer to AskConditions. uid is that of the request in admission. The decision has no conditions. An error
// means that the answer is not of the dialect, or is about another request: the failure policy for the peer applies. The decision beside an
// error is Deny.
func (d Dialect) ReadConditionsAnswer(body []byte, uid types.UID) (authorizer.ConditionsAwareDecision, error) {
	var none authorizer.ConditionsAwareDecision
	if _, ok := codecOf(d); !ok {
		return none, errNoDialect
	}
	if len(body) > maxBytes {
		return none, fmt.Errorf("review: has %d bytes: send at most %d", len(body), maxBytes)
	}
	response, err := partOfConditionsReview(body, "response")
	if err != nil {
		return none, err
	}
	for _, other := range All() {
		if has(response[string(other)]) {
			return none, fmt.Errorf("response.%s: a decision with conditions is no answer: send one without", other)
		}
	}
	// A reader of one dialect and a reader of another one must not take different decisions from one answer.
	others := []string{"allowed", "denied"}
	if d != ConditionalDecision {
		others = []string{"decision"}
	}
	for _, name := range others {
		if has(response[name]) {
			return none, fmt.Errorf("response.%s: is of another dialect, and %s was asked for: configure the dialect of this authorizer", name, d)
		}
	}
	if has(response["uid"]) {
		var of types.UID
		if err := json.Unmarshal(response["uid"], &of); err != nil || of != uid || uid == "" {
			return none, errors.New("response.uid: is not that of the request: copy the uid of the request in admission")
		}
	}
	if d == ConditionalDecision {
		return readDraftAnswer(response)
	}
	if !has(response["allowed"]) {
		return none, fmt.Errorf("response: has no field allowed, and the dialect %s was asked for: configure the dialect of this authorizer", d)
	}
	decision, err := readPlain(response)
	if err != nil {
		return none, fmt.Errorf("response: %w", err)
	}
	return decision, nil
}

func readDraftAnswer(response map[string]jsontext.Value) (authorizer.ConditionsAwareDecision, error) {
	var none authorizer.ConditionsAwareDecision
	if !has(response["uid"]) || !has(response["decision"]) {
		return none, fmt.Errorf("response: has no uid or no decision, and the dialect %s was asked for: configure the dialect of this authorizer", ConditionalDecision)
	}
	var answer draftDecision
	if err := strict(response["decision"], &answer); err != nil {
		return none, fmt.Errorf("response.decision%w", err)
	}
	decision, err := answer.read(".decision", &counter{dialect: ConditionalDecision}, 0)
	if err != nil {
		return none, fmt.Errorf("response%w", err)
	}
	if !decision.IsUnconditional() {
		return none, errors.New("response.decision: has conditions: send Allow, Deny or NoOpinion")
	}
	return decision, nil
}

// conditionsReview returns a review with one part.
func conditionsReview(part string, value any) ([]byte, error) {
	return json.Marshal(map[string]any{"apiVersion": conditionsReviewVersion, "kind": conditionsReviewKind, part: value}, json.Deterministic(true))
}

// partOfConditionsReview reads the members of a part of a review.
func partOfConditionsReview(body []byte, part string) (map[string]jsontext.Value, error) {
	review, err := object("review", body)
	if err != nil {
		return nil, err
	}
	if err := isOf(review, conditionsReviewVersion, conditionsReviewKind); err != nil {
		return nil, err
	}
	return object(part, review[part])
}

// beside returns the members of a request in admission and others.
func beside(admission jsontext.Value, others map[string]any) (map[string]any, error) {
	members, err := object("admission request", admission)
	if err != nil {
		return nil, err
	}
	for name, value := range members {
		others[name] = value
	}
	return others, nil
}

// without returns the members of a request but for some names.
func without(request map[string]jsontext.Value, names ...string) (jsontext.Value, error) {
	rest := make(map[string]jsontext.Value, len(request))
	for name, value := range request {
		rest[name] = value
	}
	for _, name := range names {
		delete(rest, name)
	}
	return json.Marshal(rest, json.Deterministic(true))
}
