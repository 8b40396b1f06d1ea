package admission

import (
	"context"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/fieldperm"
)

const admissionVersion = "admission.k8s.io/v1"

// Outcome is the result of a review, for metrics.
type Outcome string

// These are the outcomes. OutcomeRefused means that the body held no review. OutcomeError means that there is no decision.
const (
	OutcomeAllowed   Outcome = "allowed"
	OutcomeDenied    Outcome = "denied"
	OutcomeNoOpinion Outcome = "no_opinion"
	OutcomeRefused   Outcome = "refused"
	OutcomeError     Outcome = "error"
	OutcomeProbe     Outcome = "probe"
)

// Handlers holds the settings that all handlers share.
type Handlers struct {
	// MaxBytes is the maximum size of a request's body in bytes; 0 refuses every body.
	MaxBytes int64
	// Observe is called for every answer, unless it is nil. checks is the number of verbs that were asked for.
	Observe func(endpoint string, outcome Outcome, checks int, took time.Duration)
	// Decided is called for every admission decision, unless it is nil.
	Decided func(endpoint Endpoint, mode fieldperm.Mode, allowed bool)
	// Probes recognizes fieldperm's own probes; nil refuses them all.
	Probes Probes
	// Known returns a text for the objects of the cluster that are in force here. Replicas return the same text for the same objects. A nil func means that
	// there are none.
	Known func() string
	// Share reports whether one more review of this user may be held in memory; nil means always. It is called after the review is
	// decoded, when the user is known.
	Share func(ctx context.Context, user string, probe bool) bool
}

// ReviewHandler serves AdmissionReview v1 for one endpoint.
func (h Handlers) ReviewHandler(endpoint Endpoint, reviewer *Reviewer) http.Handler {
	return h.serveReview(string(endpoint), func(ctx context.Context, x *exchange, in *DecodedReview) {
		if response, is := h.probe(ctx, x.w, endpoint, in.Request); is {
			x.respond(ctx, response, OutcomeProbe, 0)
			return
		}
		result, err := reviewer.ReviewDecoded(ctx, endpoint, in)
		outcome, checks := h.record(ctx, endpoint, result, err)
		x.respond(ctx, Response(result, err, in.Request), outcome, checks)
	})
}

// serveReview reads an AdmissionReview and passes it to respond, with a context that ends before the API server gives up. It refuses a body
// that holds no review.
func (h Handlers) serveReview(endpoint string, respond func(context.Context, *exchange, *DecodedReview)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := h.begin(w, r, endpoint)
		in, err := x.readReview()
		if err != nil {
			x.refuse(err)
			return
		}
		defer in.Release()
		ctx := x.context(in.Request)
		defer ctx.end()
		respond(ctx, x, in)
	})
}

// record logs a decision and passes it to Decided. It returns the outcome and the number of verbs that were asked for.
func (h Handlers) record(ctx context.Context, endpoint Endpoint, result *Result, err error) (Outcome, int) {
	log := klog.FromContext(ctx)
	if err != nil {
		log.Error(err, "Review failed", "code", Code(err))
		return OutcomeError, 0
	}
	if log := log.V(4); log.Enabled() { // The values of a line take memory, also if it is not written.
		log.Info("Reviewed", "allowed", result.Allowed, "mode", result.Mode, "changes", len(result.Requirements), "checks", len(result.Checks))
	}
	if h.Decided != nil {
		h.Decided(endpoint, result.Mode, result.Allowed)
	}
	if !result.Allowed {
		return OutcomeDenied, len(result.Checks)
	}
	return OutcomeAllowed, len(result.Checks)
}

// SchemaHandler serves AdmissionReview v1 for the documents of permission schemas.
func (h Handlers) SchemaHandler(reviewer *SchemaReviewer) http.Handler {
	return h.serveReview("schemas", func(ctx context.Context, x *exchange, in *DecodedReview) {
		faults, err := reviewer.Review(ctx, in.Request)
		response, outcome := SchemaResponse(faults, err, in.Request), OutcomeAllowed
		switch {
		case err != nil:
			klog.FromContext(ctx).Error(err, "Validation failed", "code", Code(err))
			outcome = OutcomeError
		case !response.Allowed:
			outcome = OutcomeDenied
		}
		x.respond(ctx, response, outcome, 0)
	})
}

// AuthorizeHandler serves SubjectAccessReview v1. An error gives HTTP 500 (400 for an invalid review) and never an answer; the API
// server's failurePolicy for the authorizer then decides.
func (h Handlers) AuthorizeHandler(reviewer *AuthorizeReviewer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := h.begin(w, r, "authorize")
		spec, err := readAccess(w, r, h.MaxBytes)
		if err != nil {
			x.refuse(err)
			return
		}
		ctx := x.context(nil)
		defer ctx.end()
		log := klog.FromContext(ctx)
		status, err := reviewer.Review(ctx, spec)
		if err != nil {
			x.fail(log, err)
			return
		}
		answer, err := encodeAccess(status)
		x.write(log, answer, err)
		if status.Allowed {
			x.observe(OutcomeAllowed, 1)
		} else {
			x.observe(OutcomeNoOpinion, 0)
		}
	})
}

// fail answers with an HTTP error, which is no decision.
func (x *exchange) fail(log klog.Logger, err error) {
	code := http.StatusInternalServerError
	if Code(err) == http.StatusBadRequest {
		code = http.StatusBadRequest
	}
	log.Error(err, "Review failed", "code", code)
	http.Error(x.w, err.Error(), code)
	x.observe(OutcomeError, 0)
}

// exchange is one request to an endpoint and its response.
type exchange struct {
	Handlers
	w        http.ResponseWriter
	r        *http.Request
	endpoint string
	started  time.Time
}

func (h Handlers) begin(w http.ResponseWriter, r *http.Request, endpoint string) *exchange {
	return &exchange{Handlers: h, w: w, r: r, endpoint: endpoint, started: time.Now()}
}

// readReview decodes the body. It returns an error if the body holds no review, or if the user has no share left.
func (x *exchange) readReview() (*DecodedReview, error) {
	in, err := readReview(x.w, x.r, x.MaxBytes)
	if err != nil {
		return nil, err
	}
	if user := in.Request.UserInfo.Username; x.Share != nil && !x.Share(x.r.Context(), user, user == ProbeUser) {
		in.Release()
		return nil, errNoShare
	}
	return in, nil
}

// context returns the context of a review. req is nil if the review is not of an admission request. The caller must end it.
func (x *exchange) context(req *admissionv1.AdmissionRequest) *reviewContext {
	return newReviewContext(x.r.Context(), patience(x.r), x.endpoint, req)
}

// about returns the log fields of a request. They contain no contents of objects and, above the API server's own level, no names of users.
func about(req *admissionv1.AdmissionRequest) []any {
	return []any{"uid", req.UID, "operation", req.Operation, "resource", resourceName(req), "object", klog.KRef(req.Namespace, req.Name)}
}

// respond sends the response to an admission review. A nil response means that it is already sent.
func (x *exchange) respond(ctx context.Context, response *admissionv1.AdmissionResponse, outcome Outcome, checks int) {
	if response != nil {
		answer, err := encodeReview(response)
		x.write(klog.FromContext(ctx), answer, err)
	}
	x.observe(outcome, checks)
}

func (x *exchange) refuse(err error) {
	klog.FromContext(x.r.Context()).V(2).Info("Refused a request", "endpoint", x.endpoint, "code", Code(err), "reason", err.Error())
	Refuse(x.w, err)
	x.observe(OutcomeRefused, 0)
}

// write sends an answer, or says that it could not be encoded. net/http adds the length of a short one.
func (x *exchange) write(log klog.Logger, answer []byte, err error) {
	if err != nil {
		log.Error(err, "Response cannot be encoded")
		http.Error(x.w, "response cannot be encoded: report this as a fault of fieldperm", http.StatusInternalServerError)
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	if _, err := x.w.Write(answer); err != nil {
		log.V(2).Info("Response was not read", "err", err)
	}
}

func (x *exchange) observe(outcome Outcome, checks int) {
	if x.Observe != nil {
		x.Observe(x.endpoint, outcome, checks, time.Since(x.started))
	}
}

const (
	// defaultPatience is the API server's default timeout of a webhook, maxPatience its longest.
	defaultPatience = 10 * time.Second
	maxPatience     = 30 * time.Second
	// headStart is how long before the API server stops waiting an answer must be sent, so that the client learns the reason.
	headStart = 500 * time.Millisecond
)

// patience returns how long the caller waits, less headStart. An API server sends the timeout of a webhook in the query.
func patience(r *http.Request) time.Duration {
	wait := defaultPatience
	if d, err := time.ParseDuration(timeoutOf(r)); err == nil && d > 0 {
		wait = min(d, maxPatience)
	}
	return max(wait-headStart, wait/2)
}

// timeoutOf returns the parameter timeout of a request, "" if there is none.
func timeoutOf(r *http.Request) string {
	// API servers send nothing else in the query, so that most queries need not be parsed.
	if value, only := strings.CutPrefix(r.URL.RawQuery, "timeout="); only && !strings.ContainsAny(value, "&;%+") {
		return value
	}
	return r.URL.Query().Get("timeout")
}
