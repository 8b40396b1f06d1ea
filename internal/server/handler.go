package server

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/internal/review"
	"github.com/fieldperm/fieldperm/internal/tracing"
)

// endpoint is a path that is not a health check.
type endpoint struct {
	path    string
	handler http.Handler
	// guard refuses callers that are not authenticated, and requests above the limits.
	guard func(http.Handler) http.Handler
	// public means that unknown callers may call the endpoint.
	public bool
}

// endpoints returns the endpoints. The webhooks and the review API have separate limits: users of the review API must not keep
// kube-apiservers from calling the webhooks.
func (s *Server) endpoints() []endpoint {
	longest, question := s.options.MaxRequestBytes, min(s.options.MaxRequestBytes, largestQuestion)
	handlers := admission.Handlers{MaxBytes: longest, Observe: s.observe, Decided: s.decided, Probes: s.enforcement.tokens, Known: s.schemas.digest, Share: share}
	asked := handlers
	asked.MaxBytes = question
	api := review.API{Reviewer: s.authorization.writes, Schema: s.schemas.Schema, MayReview: s.authorization.mayReview, MaxBytes: question}
	callers := s.newCallers()
	calls, questions := newLimit(s.options.MaxRequestsInFlight), newLimit(max(1, s.options.MaxRequestsInFlight/reviewShare))
	observations := newLimit(max(1, s.options.MaxRequestsInFlight/observedShare))
	bytes := newBudgets(memoryLimit(s.options.MemoryLimit), longest, question)
	s.metrics.Bodies(bytes.reviews.total, bytes.reviews.held)
	bounded := func(b *budget, l limit, longest int64, next http.Handler) http.Handler {
		return l.handler(b.handler(longest, s.metrics.NoRoom, next))
	}
	authorize := func(next http.Handler) http.Handler {
		// Authentication comes before the limits, so that unknown callers take no capacity.
		return callers.authenticated(callers.webhooks(), cureCertificate, bounded(bytes.authorize, calls, question, next))
	}
	ask := func(next http.Handler) http.Handler {
		return callers.identified(callers.people(), cureToken, bounded(bytes.questions, questions, question, next))
	}
	public := s.options.AdmissionCallers == callersAny
	called := func(next http.Handler) http.Handler {
		if public {
			return next
		}
		return callers.authenticated(callers.webhooks(), cureCertificate, next)
	}
	admit := func(next http.Handler) http.Handler { return called(bounded(bytes.reviews, calls, longest, next)) }
	read := func(next http.Handler) http.Handler { return bounded(bytes.observed, observations, longest, next) }
	recorder := s.observations.recorder
	// A request that is not reviewed may be one that is observed. Authentication comes first: others must not add gaps.
	watched := func(next http.Handler) http.Handler { return called(onRefusal(recorder.Refused, read(next))) }
	tried := func(next http.Handler) http.Handler { return called(read(next)) }
	out := []endpoint{
		{"/admit/granular", handlers.ReviewHandler(admission.Granular, s.authorization.writes), admit, public},
		{"/admit/uncovered", handlers.ReviewHandler(admission.Uncovered, s.authorization.writes), admit, public},
		{webhooks.ObservedPath, handlers.ObservationHandler(s.authorization.writes, recorder), watched, public},
		{webhooks.TriedPath, handlers.TrialHandler(s.authorization.writes), tried, public},
		{webhooks.ProbePath + "{state}", handlers.ProbeHandler(), admit, public},
		{"/admit/schemas", handlers.SchemaHandler(s.authorization.documents), admit, public},
		{authorizePath, asked.AuthorizeHandler(s.authorization.requests), authorize, false},
		{"/review", api.ReviewHandler(), ask, true},
		{"/permissions", api.PermissionsHandler(), ask, true},
	}
	evaluate := func(next http.Handler) http.Handler {
		return callers.authenticated(callers.webhooks(), cureCertificate, bounded(bytes.reviews, calls, longest, next))
	}
	for _, d := range wire.All() {
		out = append(out,
			endpoint{authorizePath + "/" + string(d), asked.DialectHandler(s.authorization.requests, d), authorize, false},
			endpoint{conditionsPath + "/" + string(d), handlers.ConditionsHandler(s.authorization.writes, d), evaluate, false})
	}
	return out
}

const (
	authorizePath  = "/authorize"
	conditionsPath = "/conditions"
)

// reviewShare is how many concurrent webhook calls are allowed for each concurrent request to the review API.
const reviewShare = 10

// observedShare is how many concurrent webhook calls that enforce are allowed for each concurrent observation.
const observedShare = 4

// onRefusal calls refused with the HTTP status of each request that is not answered.
func onRefusal(refused func(code int), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&refusalWriter{ResponseWriter: w, refused: refused}, r)
	})
}

type refusalWriter struct {
	http.ResponseWriter
	refused func(code int)
}

func (w *refusalWriter) WriteHeader(code int) {
	if code != http.StatusOK {
		w.refused(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// handler serves every path. Health checks need no authentication.
func (s *Server) handler() http.Handler {
	mux, callers := http.NewServeMux(), s.newCallers()
	for _, e := range s.endpoints() {
		traced := tracing.Handler
		if e.public {
			// Unknown callers must not be able to force the sampling of a trace.
			traced = tracing.PublicHandler
		}
		mux.Handle(e.path, e.guard(s.metrics.InFlight(endpointOf(e.path), traced(e.handler, s.tracer))))
	}
	mux.Handle("/metrics", callers.authenticated(callers.certificate, cureCertificate, s.metrics.Handler()))
	alive := []healthz.HealthChecker{healthz.PingHealthz, healthz.LogHealthz}
	healthz.InstallHandler(mux, alive...)
	healthz.InstallLivezHandler(mux, alive...)
	ready := http.NewServeMux()
	healthz.InstallReadyzHandler(ready, append(alive,
		healthz.NamedCheck("schemas", func(*http.Request) error { return s.schemas.Ready() }),
		healthz.NamedCheck("policies", func(*http.Request) error { return s.schemas.policies.Ready() }),
		healthz.NamedCheck("discovery", func(*http.Request) error { return s.schemas.resources.Ready() }),
		healthz.NamedCheck("certificate", func(*http.Request) error { return s.certificates.Ready() }),
		healthz.NamedCheck("authorization", func(*http.Request) error { return s.authorization.chain.Ready() }),
		healthz.NamedCheck("enforcement", func(*http.Request) error { return s.enforcement.interlock.Status() }),
		healthz.NamedCheck("shutdown", func(*http.Request) error {
			if s.draining.Load() {
				return errors.New("the server is draining")
			}
			return nil
		}),
	)...)
	mux.Handle("/readyz", s.withFaults(ready))
	mux.Handle("/readyz/", ready)
	return roomy(recovered(s.parting(mux)))
}

// parting tells clients to close their connection once the server accepts no more. The HTTP/2 server does so itself, except on a connection
// whose handshake ends later. A client that writes all the time would keep it, and the server, until --shutdown-timeout.
func (s *Server) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.closing.Load() {
			w.Header().Set("Connection", "close") // HTTP/2 sends GOAWAY instead.
		}
		next.ServeHTTP(w, r)
	})
}

// withFaults adds the faults of schema documents and of single resources to /readyz?verbose. A fault does not make fieldperm
// unready: the last valid schema is in force, and one fault must not take down every webhook.
func (s *Server) withFaults(ready http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ready.ServeHTTP(w, r)
		if _, verbose := r.URL.Query()["verbose"]; !verbose {
			return
		}
		if n := len(s.schemas.Faults()); n > 0 {
			fmt.Fprintf(w, "[!]schemas: %d faults in documents, see the log\n", n)
		}
		// This path needs no authentication, and faults contain addresses and parts of files.
		if s.authorization.chain.Fault() != nil {
			fmt.Fprintln(w, "[!]authorization: an earlier configuration is in force, see the log")
		}
		if s.authorization.tokens != nil && s.authorization.tokens.Fault() != nil {
			fmt.Fprintln(w, "[!]authentication: an earlier configuration is in force, see the log")
		}
		for _, err := range s.enforcement.interlock.Unproven() {
			fmt.Fprintf(w, "[!]enforcement: not everything is proven: %v\n", err)
		}
	})
}

func (s *Server) observe(endpoint string, outcome admission.Outcome, checks int, took time.Duration) {
	decided := outcome == admission.OutcomeAllowed || outcome == admission.OutcomeDenied || outcome == admission.OutcomeNoOpinion
	s.metrics.Review(endpoint, string(outcome), decided, checks, took)
}

func (s *Server) decided(endpoint admission.Endpoint, mode fieldperm.Mode, allowed bool) {
	result := admission.OutcomeDenied
	if allowed {
		result = admission.OutcomeAllowed
	}
	s.metrics.Decision(string(endpoint), string(mode), string(result))
}

// endpointOf returns the name of a path in metrics. The dialects of an endpoint have one name, and so have all states.
func endpointOf(path string) string {
	for _, of := range []string{authorizePath, conditionsPath, webhooks.ProbePath} {
		if strings.HasPrefix(path, of) {
			return strings.Trim(of, "/")
		}
	}
	return path[strings.LastIndex(path, "/")+1:]
}

// recovered turns a panic into a 500. An API server never treats a 500 as Allow.
func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch cause := recover(); cause {
			case nil:
			case http.ErrAbortHandler:
				panic(cause)
			default:
				klog.FromContext(r.Context()).Error(fmt.Errorf("panic: %v", cause), "A handler panicked", "path", r.URL.Path, "stack", string(debug.Stack()))
				http.Error(w, "the server panicked: report this as a fault of fieldperm", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// roomy makes room on the stack for a review before it starts. Each HTTP/2 request has a goroutine of its own, whose stack is too small for a
// review. Here few calls are on it that have to be moved; in a comparison of objects there are forty.
func roomy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		growStack(-1)
		next.ServeHTTP(w, r)
	})
}

// reviewStack is how many bytes of stack a review needs.
const reviewStack = 10 << 10

// growStack returns 0. A stack grows at the entry of a call, by all that the call may need, and does not shrink during a request. A negative at leaves
// the room out, which would be cleared first.
//
//go:noinline
func growStack(at int) byte {
	if at < 0 {
		return 0
	}
	var room [reviewStack]byte
	return room[at]
}
