package admission

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/fieldperm"
)

const (
	admissionVersion     = "admission.k8s.io/v1"
	authorizationVersion = "authorization.k8s.io/v1"
)

// Outcome is how a review ended, for metrics.
type Outcome string

// The outcomes. A refused body held no review; an error is no decision.
const (
	OutcomeAllowed   Outcome = "allowed"
	OutcomeDenied    Outcome = "denied"
	OutcomeNoOpinion Outcome = "no_opinion"
	OutcomeRefused   Outcome = "refused"
	OutcomeError     Outcome = "error"
	OutcomeCanary    Outcome = "canary"
)

// Wire is what the handlers share.
type Wire struct {
	// MaxBytes bounds a request's body; 0 refuses every body.
	MaxBytes int64
	// Observe is told of every answer; nil for nobody. checks is how many verbs were asked.
	Observe func(endpoint string, outcome Outcome, checks int, took time.Duration)
	// Decided is told of every decision of admission; nil for nobody.
	Decided func(endpoint Endpoint, mode fieldperm.Mode, allowed bool)
	// Canaries tells fieldperm's own canaries; nil refuses them all.
	Canaries Canaries
	// Seen is told of each request that is reviewed; nil for nobody. It must not block, and must not keep the request.
	Seen func(*admissionv1.AdmissionRequest)
	// Share reports whether one more review of the user may be held; nil for always. It is called once the
	// user is known, for a review that has been read.
	Share func(ctx context.Context, user string, canary bool) bool
}

// ReviewHandler serves AdmissionReview v1 for one endpoint.
func (wire Wire) ReviewHandler(endpoint Endpoint, reviewer *Reviewer) http.Handler {
	return wire.admissionHandler(string(endpoint), func(ctx context.Context, w http.ResponseWriter, in *Reading) (*admissionv1.AdmissionResponse, Outcome, int) {
		req := in.Request
		if response, is := wire.canary(ctx, w, endpoint, reviewer, req); is {
			return response, OutcomeCanary, 0
		}
		if wire.Seen != nil {
			wire.Seen(req)
		}
		result, err := reviewer.ReviewReading(ctx, endpoint, in)
		response := Response(result, err, req)
		log := klog.FromContext(ctx)
		if err != nil {
			log.Error(err, "Review failed", "code", Code(err))
			return response, OutcomeError, 0
		}
		log.V(4).Info("Reviewed", "allowed", result.Allowed, "mode", result.Mode, "changes", len(result.Requirements), "checks", len(result.Checks))
		if wire.Decided != nil {
			wire.Decided(endpoint, result.Mode, result.Allowed)
		}
		if !result.Allowed {
			return response, OutcomeDenied, len(result.Checks)
		}
		return response, OutcomeAllowed, len(result.Checks)
	})
}

// SchemaHandler serves AdmissionReview v1 for the documents of permission schemas.
func (wire Wire) SchemaHandler(reviewer *SchemaReviewer) http.Handler {
	return wire.admissionHandler("schemas", func(ctx context.Context, _ http.ResponseWriter, in *Reading) (*admissionv1.AdmissionResponse, Outcome, int) {
		faults, err := reviewer.Review(in.Request)
		response := SchemaResponse(faults, err, in.Request)
		switch {
		case err != nil:
			klog.FromContext(ctx).Error(err, "Validation failed", "code", Code(err))
			return response, OutcomeError, 0
		case !response.Allowed:
			return response, OutcomeDenied, 0
		}
		return response, OutcomeAllowed, 0
	})
}

// admissionHandler answers with what review returns. A nil response is that it has answered itself.
func (wire Wire) admissionHandler(endpoint string, review func(context.Context, http.ResponseWriter, *Reading) (*admissionv1.AdmissionResponse, Outcome, int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		in, err := readReview(w, r, wire.MaxBytes)
		if err != nil {
			wire.refuse(w, r, endpoint, err, started)
			return
		}
		defer in.Release()
		if user := in.Request.UserInfo.Username; wire.Share != nil && !wire.Share(r.Context(), user, user == CanaryUser) {
			wire.refuse(w, r, endpoint, refused(http.StatusTooManyRequests, "the reviews of this user that are being answered hold their share of memory: try again, or send fewer at once"), started)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience(r))
		defer cancel()
		// Never object contents, and no user names above the API server's own logging.
		log := klog.FromContext(ctx).WithValues("endpoint", endpoint, "uid", in.Request.UID,
			"operation", in.Request.Operation, "resource", resourceName(in.Request), "object", klog.KRef(in.Request.Namespace, in.Request.Name))
		response, outcome, checks := review(klog.NewContext(ctx, log), w, in)
		if response != nil {
			answer := admissionv1.AdmissionReview{Response: response}
			answer.APIVersion, answer.Kind = admissionVersion, "AdmissionReview"
			wire.answer(log, w, answer)
		}
		wire.observe(endpoint, outcome, checks, started)
	})
}

// AuthorizeHandler serves SubjectAccessReview v1. An error is HTTP 500 (400 for a review that makes no
// sense), never an answer: the API server's failurePolicy for the authorizer decides then.
func (wire Wire) AuthorizeHandler(reviewer *AuthorizeReviewer) http.Handler {
	const endpoint = "authorize"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		var review authorizationv1.SubjectAccessReview
		if err := readDocument(w, r, wire.MaxBytes, &review, &review.TypeMeta, authorizationVersion, "SubjectAccessReview"); err != nil {
			wire.refuse(w, r, endpoint, err, started)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience(r))
		defer cancel()
		log := klog.FromContext(ctx).WithValues("endpoint", endpoint)
		status, err := reviewer.Review(klog.NewContext(ctx, log), &review.Spec)
		if err != nil {
			code := http.StatusInternalServerError
			if Code(err) == http.StatusBadRequest {
				code = http.StatusBadRequest
			}
			log.Error(err, "Review failed", "code", code)
			http.Error(w, err.Error(), code)
			wire.observe(endpoint, OutcomeError, 0, started)
			return
		}
		review.Status = status
		wire.answer(log, w, review)
		if status.Allowed {
			wire.observe(endpoint, OutcomeAllowed, 1, started)
		} else {
			wire.observe(endpoint, OutcomeNoOpinion, 0, started)
		}
	})
}

func (wire Wire) refuse(w http.ResponseWriter, r *http.Request, endpoint string, err error, started time.Time) {
	klog.FromContext(r.Context()).V(2).Info("Refused a request", "endpoint", endpoint, "code", Code(err), "reason", err.Error())
	Refuse(w, err)
	wire.observe(endpoint, OutcomeRefused, 0, started)
}

func (wire Wire) answer(log klog.Logger, w http.ResponseWriter, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		log.Error(err, "Response cannot be encoded")
		http.Error(w, "response cannot be encoded: report this as a fault of fieldperm", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(body); err != nil {
		log.V(2).Info("Response was not read", "err", err)
	}
}

func (wire Wire) observe(endpoint string, outcome Outcome, checks int, started time.Time) {
	if wire.Observe != nil {
		wire.Observe(endpoint, outcome, checks, time.Since(started))
	}
}

const (
	// defaultPatience is the API server's default timeout of a webhook, maxPatience its longest.
	defaultPatience = 10 * time.Second
	maxPatience     = 30 * time.Second
	// headStart is how long before the API server gives up an answer must leave, so that the client
	// learns why.
	headStart = 500 * time.Millisecond
)

// patience is how long the caller waits: API servers tell a webhook its timeout in the query.
func patience(r *http.Request) time.Duration {
	wait := defaultPatience
	if d, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && d > 0 {
		wait = min(d, maxPatience)
	}
	return max(wait-headStart, wait/2)
}
