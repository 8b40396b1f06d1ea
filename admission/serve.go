package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/verbs"
)

const (
	// AllowCondition is the ID of a condition of Decide with the effect Allow. It has no text that another program could evaluate: the policies,
	// the verbs of the user and the objects decide.
	AllowCondition = "fieldperm.dev/allow"
	// DenyCondition is the ID of one with the effect Deny.
	DenyCondition = "fieldperm.dev/deny"
	// ownConditions is their type and their text.
	ownConditions = "fieldperm.dev/admission"
	// metReason is the reason of an Allow with the objects. It is no generic permission (A3).
	metReason = verbs.Prefix + " the conditions of fieldperm are met"
)

// Decide is the authorization phase for a caller that evaluates conditions itself (KEP-5681). In contrast to Review it needs no proof of
// enforcement, and it denies. Code returns 400 or 500 for an error.
func (r *AuthorizeReviewer) Decide(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (authorizer.ConditionsAwareDecision, error) {
	none := authorizer.ConditionsAwareDecisionNoOpinion("", nil)
	if err := checkSpec(spec); err != nil {
		return none, err
	}
	if !writes(spec) || spec.User == ProbeUser {
		return none, nil
	}
	policies, err := r.policies()
	if err != nil {
		return none, err
	}
	decision := policies.ask(ctx, spec, spec.ResourceAttributes.Verb)
	switch {
	case decision.IsAllow():
		return decision, nil
	case decision.IsDeny() && decision.Error() != nil && !isBeyondDeny(writeOf(spec)):
		// A Deny that is due to a failure is an error (P4).
		return none, decision.Error()
	case decision.IsDeny() && !isBeyondDeny(writeOf(spec)):
		return decision, nil
	}
	mayDeny := decision.PossibleDecisions().Has(authorizer.DecisionDeny) && !isBeyondDeny(writeOf(spec))
	mayAllow := canBecomeAllowed(decision) && (r.allowed(spec.ResourceAttributes) || r.created(spec.ResourceAttributes))
	if !mayAllow && r.allowed(spec.ResourceAttributes) && granularVerbs(spec.ResourceAttributes.Verb) {
		answer, err := r.holds(ctx, policies, spec, verbs.Marker)
		if err != nil {
			return none, err
		}
		if mayAllow = answer.Allowed(); !mayAllow && answer.Failure != nil {
			return none, answer.Failure
		}
	}
	reason := ""
	if mayAllow {
		if reason, err = r.unreadable(ctx, policies, spec); err != nil {
			return none, err
		}
		mayAllow = reason == ""
	}
	if !mayAllow && !mayDeny {
		none = authorizer.ConditionsAwareDecisionNoOpinion(reason, nil)
		if decision.IsDeny() {
			return none, nil
		}
		return none, decision.Error()
	}
	var deny, allow []authorizer.Condition
	if mayDeny {
		deny = append(deny, own(DenyCondition, "fieldperm denies the objects: "+listed(decision, authorizer.Condition.GetDescription)))
	}
	if mayAllow {
		allow = append(allow, own(AllowCondition, "fieldperm allows the objects, by granular verbs or: "+listed(decision, authorizer.Condition.GetDescription)))
	}
	return authorizer.ConditionsAwareDecisionConditionsMap(deny, nil, allow), nil
}

// isBeyondDeny reports whether a Deny must not reach a request, as the match conditions of the webhook "uncovered" say (W2, W4).
func isBeyondDeny(req *admissionv1.AdmissionRequest) bool {
	return slices.Contains(req.UserInfo.Groups, user.SystemPrivilegedGroup) || OnFloor(req)
}

// writeOf returns the admission request of a review, with objects that do not differ.
func writeOf(spec *authorizationv1.SubjectAccessReviewSpec) *admissionv1.AdmissionRequest {
	a := spec.ResourceAttributes
	out := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Resource: metav1.GroupVersionResource{Group: a.Group, Version: a.Version, Resource: a.Resource}, SubResource: a.Subresource,
		Namespace: a.Namespace, Name: a.Name, UserInfo: authenticationv1.UserInfo{Username: spec.User, Groups: spec.Groups},
	}
	switch a.Verb {
	case "create":
		out.Operation = admissionv1.Create
	case "delete", "deletecollection":
		out.Operation = admissionv1.Delete
	}
	out.Object.Raw, out.OldObject.Raw = []byte("{}"), []byte("{}")
	return out
}

func own(id, description string) authorizer.Condition {
	return authorizer.GenericCondition{ID: id, Type: ownConditions, Condition: ownConditions, Description: shorten.Within(strings.TrimSuffix(description, ": "), maxDescription)}
}

// listed returns a text of each condition of a decision, for people.
func listed(d authorizer.ConditionsAwareDecision, text func(authorizer.Condition) string) string {
	var out []string
	if d.IsUnion() {
		for _, inner := range d.UnionedDecisions() {
			if of := listed(inner, text); of != "" {
				out = append(out, of)
			}
		}
	}
	if d.IsConditionsMap() {
		all := d.ConditionsMap()
		for _, some := range []func(func(authorizer.Condition) bool){all.DenyConditions(), all.NoOpinionConditions(), all.AllowConditions()} {
			for c := range some {
				if of := text(c); of != "" {
					out = append(out, of)
				}
			}
		}
	}
	return strings.Join(out, ", ")
}

// Evaluate decides on a write by a decision of Decide, which may have been sent to another program and back. It evaluates only conditions of
// Decide. It uses the policies and the verbs of now. The result has no conditions. Code returns 400 or 500 for an error.
func (r *Reviewer) Evaluate(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, req *admissionv1.AdmissionRequest,
) (authorizer.ConditionsAwareDecision, error) {
	if !isOwn(decision) {
		return authorizer.ConditionsAwareDecision{}, badRequest("decision: has conditions that are not fieldperm's, or not all of them: %q: send back the decision that was received", listed(decision, authorizer.Condition.GetID))
	}
	result, err := r.forConditions().Review(ctx, Granular, req)
	switch {
	case err != nil:
		return authorizer.ConditionsAwareDecision{}, err
	case result.Allowed && decision.PossibleDecisions().Has(authorizer.DecisionAllow):
		return authorizer.ConditionsAwareDecisionAllow(metReason, nil), nil
	case result.Allowed:
		// What could only deny does not allow, whatever the policies and verbs of now are.
		return authorizer.ConditionsAwareDecisionNoOpinion("", nil), nil
	case result.Denial.IsRefusal() && !isBeyondDeny(req):
		return authorizer.ConditionsAwareDecisionDeny(result.Message, nil), nil
	}
	return authorizer.ConditionsAwareDecisionNoOpinion(result.Message, nil), nil
}

// isOwn reports whether a decision has conditions, and all of them are those of Decide.
func isOwn(d authorizer.ConditionsAwareDecision) bool {
	if d.IsUnion() {
		conditional := false
		for _, inner := range d.UnionedDecisions() {
			if inner.IsNoOpinion() {
				continue
			}
			if conditional || !isOwn(inner) {
				return false
			}
			conditional = true
		}
		return conditional
	}
	if !d.IsConditionsMap() {
		return false
	}
	all := d.ConditionsMap()
	n := 0
	for id, some := range map[string]func(func(authorizer.Condition) bool){DenyCondition: all.DenyConditions(), AllowCondition: all.AllowConditions()} {
		for c := range some {
			if c.GetID() == id && c.GetType() == ownConditions && c.GetCondition() == ownConditions {
				n++
			}
		}
	}
	return n > 0 && n == all.Length()
}

// DialectHandler serves SubjectAccessReview v1 to a caller that handles conditions in a dialect. A caller that does not say so gets NoOpinion in
// place of conditions, or Deny if one may deny. Errors are as in AuthorizeHandler.
func (h Handlers) DialectHandler(reviewer *AuthorizeReviewer, d wire.Dialect) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := h.begin(w, r, "authorize")
		body, err := read(w, r, h.MaxBytes)
		if err != nil {
			x.refuse(err)
			return
		}
		spec, handles, err := d.ReadReview(body.bytes)
		if err != nil {
			x.refuse(badRequest("%w", err))
			return
		}
		ctx := x.context(nil)
		defer ctx.end()
		decision, err := reviewer.Decide(ctx, spec)
		x.answer(ctx, decision, err, func() ([]byte, error) { return d.AnswerReview(spec, decision, handles) })
	})
}

// ConditionsHandler serves AuthorizationConditionsReview in a dialect: what do conditions of DialectHandler become with the objects? Errors are
// as in AuthorizeHandler.
func (h Handlers) ConditionsHandler(reviewer *Reviewer, d wire.Dialect) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := h.begin(w, r, "conditions")
		body, err := read(w, r, h.MaxBytes)
		if err != nil {
			x.refuse(err)
			return
		}
		asked, err := d.ReadConditionsRequest(body.bytes)
		if err != nil {
			x.refuse(badRequest("%w", err))
			return
		}
		if of := asked.Admission.UserInfo.Username; x.Share != nil && !x.Share(r.Context(), of, false) {
			x.refuse(errNoShare)
			return
		}
		ctx := x.context(nil)
		defer ctx.end()
		decision, err := reviewer.Evaluate(ctx, asked.Decision, asked.Admission)
		x.answer(ctx, decision, err, func() ([]byte, error) { return d.AnswerConditions(asked.Admission.UID, decision) })
	})
}

// answer writes a decision, or an error.
func (x *exchange) answer(ctx context.Context, decision authorizer.ConditionsAwareDecision, err error, encode func() ([]byte, error)) {
	log := klog.FromContext(ctx)
	var body []byte
	if err == nil {
		if body, err = encode(); err != nil {
			err = fmt.Errorf("answer: %w", err)
		}
	}
	if err != nil {
		x.fail(log, err)
		return
	}
	answer, err := json.Marshal(json.RawMessage(body))
	x.write(log, answer, err)
	switch {
	case decision.IsDeny():
		x.observe(OutcomeDenied, 0)
	case decision.PossibleDecisions().Has(authorizer.DecisionAllow):
		x.observe(OutcomeAllowed, 1)
	default:
		x.observe(OutcomeNoOpinion, 0)
	}
}
