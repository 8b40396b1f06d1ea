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
	// ProbeUser is the user that fieldperm impersonates for probes, which test whether a write that the marker allows reaches admission
	// (A5). It holds no verbs there, and one webhook refuses each of its requests.
	ProbeUser = "fieldperm:probe"

	// ProbeKey is the extra key for the nonces of ProbeUser.
	ProbeKey = "fieldperm.dev/probe"

	// probeReason is the reason of the Allow for a probe. It has the prefix of A3.
	probeReason = "granular: probe; admission refuses it"
)

// Loaded is what an API server has loaded, as its call of the webhook for probes shows, and what this replica knows.
type Loaded struct {
	// State is the state of the configuration whose webhook for probes was called. See webhooks.State.
	State string
	// Known stands for the objects that are in force in this replica.
	Known string
}

// ProbeAnswer says how /admit/granular answers a probe. The zero answer has no token: the request is not one of fieldperm's own.
type ProbeAnswer struct {
	// Token proves to the sender of the probe that the API server called fieldperm's own webhook.
	Token string
	// Fail requests an error instead of a refusal. An error stops a write only if the webhook has failurePolicy Fail.
	Fail bool
	// Loaded, if it is not nil, requests a refusal by the handler of probes instead of /admit/granular. It returns the text which proves that fieldperm was
	// called so.
	Loaded func(Loaded) string
}

// Probes distinguishes fieldperm's own probes from forgeries.
type Probes interface {
	// Authorize reports whether a review of ProbeUser has a nonce for exactly the action that it asks for.
	Authorize(spec *authorizationv1.SubjectAccessReviewSpec) bool
	// Answer returns the answer to a request of ProbeUser.
	Answer(req *admissionv1.AdmissionRequest) ProbeAnswer
}

// probe answers a request of ProbeUser and reports whether the request is from that user. The response is nil if the answer is already
// written. The sender sees only the first refusal, so all webhooks but one let a genuine probe, which is a dry run, pass.
func (h Handlers) probe(ctx context.Context, w http.ResponseWriter, endpoint Endpoint, req *admissionv1.AdmissionRequest) (response *admissionv1.AdmissionResponse, is bool) {
	if req.UserInfo.Username != ProbeUser {
		return nil, false
	}
	answer, isProbe := h.answer(ctx, req)
	switch {
	case !isProbe:
		return refuseProbe(req, notAProbe), true
	case endpoint == Uncovered || answer.Loaded != nil:
		return &admissionv1.AdmissionResponse{UID: req.UID, Allowed: true}, true
	case answer.Fail:
		http.Error(w, "probe "+answer.Token, http.StatusInternalServerError)
		return nil, true
	}
	return refuseProbe(req, "probe "+answer.Token), true
}

// ProbeHandler serves AdmissionReview v1 at a pattern with the wildcard state: for probes that ask which version of a configuration an API server has. It
// guards nothing, so it lets other users pass, and the other probes.
func (h Handlers) ProbeHandler() http.Handler {
	return h.serveReview("probe", func(ctx context.Context, x *exchange, in *DecodedReview) {
		req := in.Request
		response := &admissionv1.AdmissionResponse{UID: req.UID, Allowed: true}
		if req.UserInfo.Username == ProbeUser {
			answer, isProbe := h.answer(ctx, req)
			switch {
			case !isProbe:
				response = refuseProbe(req, notAProbe)
			case answer.Loaded != nil:
				response = refuseProbe(req, "probe "+answer.Loaded(Loaded{State: x.r.PathValue("state"), Known: h.known()}))
			}
		}
		x.respond(ctx, response, OutcomeProbe, 0)
	})
}

func (h Handlers) known() string {
	if h.Known == nil {
		return ""
	}
	return h.Known()
}

const notAProbe = "is no probe of fieldperm: no other client may use the name " + ProbeUser

// answer returns the answer to a request of ProbeUser. It reports false if the request is no probe.
func (h Handlers) answer(ctx context.Context, req *admissionv1.AdmissionRequest) (answer ProbeAnswer, isProbe bool) {
	if h.Probes != nil {
		answer = h.Probes.Answer(req)
	}
	dry := req.DryRun != nil && *req.DryRun
	if isProbe = answer.Token != "" && dry; !isProbe {
		klog.FromContext(ctx).Info("Refused a request of the probe user that is no probe: another client impersonates it", "dryRun", dry)
	}
	return answer, isProbe
}

func refuseProbe(req *admissionv1.AdmissionRequest, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{UID: req.UID, Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
	}}
}
