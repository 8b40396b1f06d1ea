package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/verbs"
)

const (
	// GranularCondition is the ID and the type of the condition of ConditionalAuthorizer. The condition has no text of its own: the user and
	// the objects of the request decide.
	GranularCondition = "fieldperm.dev/granular"
	// coveredReason is the reason of an Allow with the objects. It is no generic permission either (A3).
	coveredReason = verbs.Prefix + " the user holds the verb of each changed field"
	// maxDescription is the largest description of a condition in bytes (KEP-5681).
	maxDescription = 1024
)

// ConditionalAuthorizer is the granular authorizer for API servers that handle conditions (KEP-5681). A request of a holder of the marker for
// create, update or patch is allowed on the condition that the user holds the granular verbs of each changed field. In contrast to
// AuthorizeReviewer it needs no proof of enforcement, because the caller evaluates the condition. It never denies in the authorization phase.
// The zero ConditionalAuthorizer has no opinion.
type ConditionalAuthorizer struct {
	// Allowed reports whether admission sees a resource as it is stored (A2).
	Allowed func(group, resource, subresource string) bool
	// Authorizer returns the authorizer that is asked for the marker, and for get before an update or a patch. It must not contain this one.
	Authorizer func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer
	// Reviewer evaluates the condition. Its Authorizer must not contain this one.
	Reviewer *Reviewer
	// Verbs lists granular verbs that the user holds, for people that read the condition, and reports whether these are all. It may be nil.
	Verbs func(context.Context, authorizer.Attributes) (held []string, all bool)
	// Encode returns the JSON of an object in the version of the kind. Without it, the objects must be unstructured.
	Encode func(object runtime.Object, kind runtimeschema.GroupVersionKind) ([]byte, error)
}

var _ authorizer.Authorizer = &ConditionalAuthorizer{}

// Authorize has no opinion: a caller that does not handle conditions cannot let a holder of the marker in.
func (c *ConditionalAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize returns the condition for a holder of the marker, who needs get too for an update and a patch (A7), and NoOpinion for
// all others.
func (c *ConditionalAuthorizer) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	none := func(err error) authorizer.ConditionsAwareDecision {
		return authorizer.ConditionsAwareDecisionNoOpinion("", err)
	}
	if c.Allowed == nil || c.Authorizer == nil || c.Reviewer == nil || a.GetUser() == nil || !a.IsResourceRequest() {
		return none(nil)
	}
	spec := specOf(a)
	if !writes(spec) || !granularVerbs(a.GetVerb()) || !c.Allowed(a.GetAPIGroup(), a.GetResource(), a.GetSubresource()) {
		return none(nil)
	}
	asked := c.Authorizer(spec)
	answer, err := asked.Authorize(ctx, verbs.Marker, false)
	if err != nil {
		return none(err)
	}
	if !answer.Allowed() {
		return none(answer.Failure)
	}
	reason, err := unreadable(spec.ResourceAttributes, func() (fieldperm.AuthorizerDecision, error) { return asked.Authorize(ctx, readVerb, false) })
	if reason != "" || err != nil {
		return authorizer.ConditionsAwareDecisionNoOpinion(reason, err)
	}
	return authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, []authorizer.Condition{authorizer.GenericCondition{
		ID: GranularCondition, Type: GranularCondition, Description: c.description(ctx, a),
		EvaluateFunc: func(ctx context.Context, data authorizer.ConditionsData) authorizer.ConditionEvaluationResult {
			result, err := c.evaluate(ctx, data)
			if err != nil {
				return authorizer.ConditionEvaluationResultError(err)
			}
			return authorizer.ConditionEvaluationResultBoolean(result.Allowed)
		},
	}})
}

func (c *ConditionalAuthorizer) description(ctx context.Context, a authorizer.Attributes) string {
	const text = "each changed field is covered by a granular verb of the user"
	if c.Verbs == nil {
		return text
	}
	held, all := c.Verbs(ctx, a)
	switch {
	case !all && len(held) == 0:
		return text
	case !all:
		held = append(held, "others")
	case len(held) == 0:
		return text + ": it holds none"
	}
	return shorten.Within(text+": "+strings.Join(held, ", "), maxDescription)
}

// EvaluateConditions decides with the objects. It evaluates only its own condition, also if that has been sent to another program and back.
func (c *ConditionalAuthorizer) EvaluateConditions(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	if err := isGranular(decision); err != nil {
		return decision.FailureDecision(), "", err
	}
	result, err := c.evaluate(ctx, data)
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", err
	case !result.Allowed:
		return authorizer.DecisionNoOpinion, result.Message, nil
	}
	return authorizer.DecisionAllow, coveredReason, nil
}

// isGranular returns an error unless a decision has exactly the condition of ConditionalAuthorizer.
func isGranular(decision authorizer.ConditionsAwareDecision) error {
	all := decision.ConditionsMap()
	for c := range all.AllowConditions() {
		if all.Length() == 1 && c.GetID() == GranularCondition && c.GetType() == GranularCondition && c.GetCondition() == "" {
			return nil
		}
	}
	return fmt.Errorf("decision %s: is not one of this authorizer: send back the one that was received", decision)
}

// evaluate reviews the write.
func (c *ConditionalAuthorizer) evaluate(ctx context.Context, data authorizer.ConditionsData) (*Result, error) {
	if c.Reviewer == nil {
		return nil, errors.New("conditional authorizer: has no reviewer: configure one")
	}
	request, err := c.requestOf(data)
	if err != nil {
		return nil, err
	}
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		// A2: the marker lets no other operation in.
		return &Result{Message: fmt.Sprintf("granular verbs do not cover operation %q", request.Operation)}, nil
	}
	return c.Reviewer.forConditions().Review(ctx, Granular, request)
}

// requestOf returns the admission request of a webhook with the same data.
func (c *ConditionalAuthorizer) requestOf(data authorizer.ConditionsData) (*admissionv1.AdmissionRequest, error) {
	resource, kind := metav1.GroupVersionResource(data.GetResource()), metav1.GroupVersionKind(data.GetKind())
	dryRun := data.IsDryRun()
	out := &admissionv1.AdmissionRequest{
		Kind: kind, Resource: resource, SubResource: data.GetSubresource(), RequestKind: &kind, RequestResource: &resource, RequestSubResource: data.GetSubresource(),
		Name: data.GetName(), Namespace: data.GetNamespace(), Operation: admissionv1.Operation(data.GetOperation()), DryRun: &dryRun,
	}
	if u := data.GetUserInfo(); u != nil {
		out.UserInfo = authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extraOf[authenticationv1.ExtraValue](u)}
	}
	var err error
	if out.Object.Raw, err = c.encode(data.GetObject(), data.GetKind()); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if out.OldObject.Raw, err = c.encode(data.GetOldObject(), data.GetKind()); err != nil {
		return nil, fmt.Errorf("old object: %w", err)
	}
	return out, nil
}

func (c *ConditionalAuthorizer) encode(object runtime.Object, kind runtimeschema.GroupVersionKind) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	if c.Encode != nil {
		return c.Encode(object, kind)
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T: may be of an internal version: set Encode", object)
	}
	return u.MarshalJSON()
}

// specOf returns the review that asks the same as the attributes.
func specOf(a authorizer.Attributes) *authorizationv1.SubjectAccessReviewSpec {
	u := a.GetUser()
	return &authorizationv1.SubjectAccessReviewSpec{
		User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extraOf[authorizationv1.ExtraValue](u),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.GetVerb(), Namespace: a.GetNamespace(), Name: a.GetName(),
			Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		},
	}
}

func extraOf[V ~[]string](u user.Info) map[string]V {
	out := map[string]V{}
	for key, values := range u.GetExtra() {
		out[key] = values
	}
	return out
}
