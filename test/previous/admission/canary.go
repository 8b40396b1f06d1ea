package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const (
	// CanaryUser is the user that fieldperm impersonates for probes, which test whether a write that the marker allows reaches admission
	// (A5). It holds no verbs, and /admit refuses all its requests.
	CanaryUser = "fieldperm:canary"

	// CanaryKey is the extra key for the nonces of CanaryUser.
	CanaryKey = "fieldperm.dev/canary"

	// canaryReason is the reason of the Allow for a canary. It has the prefix of A3.
	canaryReason = "granular: canary; admission refuses it"
)

// CanaryAnswer says how /admit/granular answers a probe. The zero answer has no token: the request is not one of fieldperm's own.
type CanaryAnswer struct {
	// Token proves to the sender of the probe that the API server called fieldperm's own webhook.
	Token string
	// Fail requests an error instead of a refusal. An error stops a write only if the webhook has failurePolicy Fail.
	Fail bool
	// Barred, if it is not nil, requests a refusal by /admit/uncovered instead of /admit/granular. It returns the text which proves that
	// a barrier is known.
	Barred func(barrier string) string
}

// Canaries distinguishes fieldperm's own probes from forgeries.
type Canaries interface {
	// Authorize reports whether a review of CanaryUser has a nonce for exactly the action that it asks for.
	Authorize(spec *authorizationv1.SubjectAccessReviewSpec) bool
	// Answer returns the answer to a request of CanaryUser.
	Answer(req *admissionv1.AdmissionRequest) CanaryAnswer
}

// canary answers a request of CanaryUser and reports whether the request is from that user. The response is nil if the answer is already
// written. The sender sees only the first refusal. So one of the two webhooks lets a genuine probe, which is a dry run, pass:
// /admit/uncovered, unless the probe asks for barriers.
func (h Handlers) canary(ctx context.Context, w http.ResponseWriter, endpoint Endpoint, reviewer *Reviewer, req *admissionv1.AdmissionRequest) (response *admissionv1.AdmissionResponse, is bool) {
	if req.UserInfo.Username != CanaryUser {
		return nil, false
	}
	var answer CanaryAnswer
	if h.Canaries != nil {
		answer = h.Canaries.Answer(req)
	}
	// A connection cannot be a dry run. That of a probe is to a Pod that does not exist.
	dry := req.DryRun != nil && *req.DryRun || req.Operation == admissionv1.Connect
	log := klog.FromContext(ctx)
	switch {
	case answer.Token == "" || !dry:
		log.Info("Refused a request of the canary user that is no probe: another client impersonates it", "dryRun", dry)
		return refuseCanary(req, "is no probe of fieldperm: no other client may use the name "+CanaryUser), true
	case (endpoint == Uncovered) != (answer.Barred != nil):
		return &admissionv1.AdmissionResponse{UID: req.UID, Allowed: true}, true
	case answer.Barred != nil:
		message := "canary " + answer.Token
		for _, barrier := range reviewer.barriers(req) {
			message += " " + answer.Barred(barrier)
		}
		return refuseCanary(req, message), true
	case answer.Fail:
		http.Error(w, "canary "+answer.Token, http.StatusInternalServerError)
		return nil, true
	}
	return refuseCanary(req, "canary "+answer.Token), true
}

func refuseCanary(req *admissionv1.AdmissionRequest, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{UID: req.UID, Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
	}}
}
