package server

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/tracing"
)

// handler serves every path. Health checks are open; all else needs a client certificate.
func (s *Server) handler() http.Handler {
	wire := admission.Wire{MaxBytes: s.options.MaxRequestBytes, Observe: s.observe, Decided: s.decided, Canaries: s.canaries}
	callers := x509.NewDynamic(s.callers.VerifyOptions, x509.CommonNameUserConversion)
	mux := http.NewServeMux()
	limit := newLimit(s.options.MaxRequestsInFlight)
	for path, handler := range map[string]http.Handler{
		"/admit/granular":  wire.ReviewHandler(admission.Granular, s.reviewer),
		"/admit/uncovered": wire.ReviewHandler(admission.Uncovered, s.reviewer),
		"/admit/schemas":   wire.SchemaHandler(s.validator),
		"/authorize":       wire.AuthorizeHandler(s.authorizer),
		"/metrics":         s.metrics.Handler(),
	} {
		open := s.options.AdmissionCallers == callersAny && strings.HasPrefix(path, "/admit/")
		switch {
		case path == "/metrics":
		case open:
			// Strangers must not make anything sampled.
			handler = s.metrics.InFlight(endpointOf(path), tracing.PublicHandler(handler, s.tracer))
		default:
			handler = s.metrics.InFlight(endpointOf(path), tracing.Handler(handler, s.tracer))
		}
		if path != "/metrics" {
			handler = limit.handler(handler)
		}
		if !open {
			handler = authenticated(callers, handler)
		}
		mux.Handle(path, handler)
	}
	alive := []healthz.HealthChecker{healthz.PingHealthz, healthz.LogHealthz}
	healthz.InstallHandler(mux, alive...)
	healthz.InstallLivezHandler(mux, alive...)
	ready := http.NewServeMux()
	healthz.InstallReadyzHandler(ready, append(alive,
		healthz.NamedCheck("schemas", func(*http.Request) error { return s.schemas.Ready() }),
		healthz.NamedCheck("discovery", func(*http.Request) error { return s.resources.Ready() }),
		healthz.NamedCheck("certificate", func(*http.Request) error {
			if s.certificate == nil {
				return nil
			}
			return s.certificate.Ready()
		}),
		healthz.NamedCheck("interlock", func(*http.Request) error { return s.interlock.Status() }),
		healthz.NamedCheck("shutdown", func(*http.Request) error {
			if s.draining.Load() {
				return errors.New("the server is draining")
			}
			return nil
		}),
	)...)
	mux.Handle("/readyz", s.withFaults(ready))
	mux.Handle("/readyz/", ready)
	return recovered(mux)
}

// withFaults adds to /readyz?verbose what is wrong with schema documents and single resources. It makes
// nothing unready: the last good schema is in force, and one fault must not take every webhook away.
func (s *Server) withFaults(ready http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ready.ServeHTTP(w, r)
		if _, verbose := r.URL.Query()["verbose"]; !verbose {
			return
		}
		if n := len(s.schemas.Faults()); n > 0 {
			fmt.Fprintf(w, "[!]schemas: %d faults in documents, see the log\n", n)
		}
		for _, err := range s.interlock.Unproven() {
			fmt.Fprintf(w, "[!]interlock: a resource is not proven: %v\n", err)
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

// endpointOf is the name of a path in metrics.
func endpointOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// authenticated lets those pass whose certificate a CA of --client-ca-file has signed.
func authenticated(callers authenticator.Request, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, ok, err := callers.AuthenticateRequest(r)
		if err != nil || !ok {
			klog.FromContext(r.Context()).V(2).Info("Refused a caller", "path", r.URL.Path, "remote", r.RemoteAddr, "err", err)
			http.Error(w, "caller is not authenticated: present a client certificate that a CA of --client-ca-file has signed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// recovered turns a panic into a 500, which no API server takes for an Allow.
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
