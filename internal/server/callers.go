package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/internal/authn"
)

// callers authenticates the callers of each path. A certificate of --client-ca-file gives access to every path. A token of
// --authentication-config gives access to the review API. It gives access to the webhooks only for the users in tokenUsers.
type callers struct {
	certificate authenticator.Request
	tokens      *authn.Authenticator // nil without --authentication-config
	tokenUsers  []string
	// looking bounds the tokens that are checked at the same time. A check may need a request to the issuer. Unknown callers must
	// not take capacity from callers that are already authenticated.
	looking limit
	// took receives the result and the time of each authentication.
	took func(result string, took time.Duration)
}

var errLooking = errors.New("bearer token: too many are being looked at")

func (c callers) token(r *http.Request) (*authenticator.Response, bool, error) {
	select {
	case c.looking <- struct{}{}:
		defer func() { <-c.looking }()
		return c.tokens.AuthenticateRequest(r)
	default:
		return nil, false, errLooking
	}
}

func (s *Server) newCallers() callers {
	return callers{
		took:        s.metrics.Authenticated,
		certificate: newCertified(s.certificates.callers.VerifyOptions, clock.RealClock{}),
		tokens:      s.authorization.tokens,
		tokenUsers:  s.options.WebhookTokenUsers,
		looking:     newLimit(s.options.MaxRequestsInFlight),
	}
}

// webhooks authenticates callers of /admit and /authorize. These paths disclose the permissions of other users.
func (c callers) webhooks() authenticator.Request {
	if c.tokens == nil || len(c.tokenUsers) == 0 {
		return c.certificate
	}
	return union.New(c.certificate, authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := c.token(r)
		if err != nil || !ok || !slices.Contains(c.tokenUsers, response.User.GetName()) {
			return nil, false, err
		}
		return response, true, nil
	}))
}

// people authenticates callers of the review API.
func (c callers) people() authenticator.Request {
	if c.tokens == nil {
		return group.NewAuthenticatedGroupAdder(c.certificate)
	}
	both := union.New(group.NewAuthenticatedGroupAdder(c.certificate), authenticator.RequestFunc(c.token))
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := both.AuthenticateRequest(r)
		if err == nil && ok && response.User.GetName() == user.Anonymous && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			return nil, false, errors.New("client certificate: is not accepted, and a caller that presents one is not anonymous")
		}
		return response, ok, err
	})
}

// authenticated passes a request on only if the authenticator accepts it. The response to any other request gives no reason; the log does.
func (c callers) authenticated(who authenticator.Request, cure string, next http.Handler) http.Handler {
	return c.accepted(who, cure, func(w http.ResponseWriter, r *http.Request, _ user.Info) { next.ServeHTTP(w, r) })
}

// identified is authenticated, with the user in the context.
func (c callers) identified(who authenticator.Request, cure string, next http.Handler) http.Handler {
	return c.accepted(who, cure, func(w http.ResponseWriter, r *http.Request, caller user.Info) {
		next.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), caller)))
	})
}

func (c callers) accepted(who authenticator.Request, cure string, next func(http.ResponseWriter, *http.Request, user.Info)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		response, ok, err := who.AuthenticateRequest(r)
		c.took(authenticationResult(ok, err), time.Since(started))
		if errors.Is(err, errLooking) {
			http.Error(w, "too many callers are being authenticated: try again", http.StatusServiceUnavailable)
			return
		}
		if err != nil || !ok || response == nil || response.User == nil {
			log := klog.FromContext(r.Context())
			if err == nil {
				log = log.V(2) // The caller sent no credentials, so there is no error to look into.
			}
			log.Info("Refused a caller", "path", r.URL.Path, "remote", r.RemoteAddr, "cause", err)
			http.Error(w, "caller is not authenticated: "+cure, http.StatusUnauthorized)
			return
		}
		next(w, r, response.User)
	})
}

func authenticationResult(ok bool, err error) string {
	switch {
	case err != nil:
		return "error"
	case !ok:
		return "failure"
	}
	return "success"
}

// The cures in messages to a caller that is refused.
const (
	cureCertificate = "present a client certificate that a CA of --client-ca-file has signed"
	cureToken       = cureCertificate + ", or a bearer token that --authentication-config accepts"
)

// mayReview reports whether a caller may ask for the permissions of other users. It requires the permission to create SubjectAccessReviews:
// with it, the caller can ask the API server the same.
func (a *authorization) mayReview(ctx context.Context, caller user.Info) (bool, error) {
	spec := &authorizationv1.SubjectAccessReviewSpec{
		User: caller.GetName(), UID: caller.GetUID(), Groups: caller.GetGroups(), Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: authorizationv1.GroupName, Version: "v1", Resource: "subjectaccessreviews",
		},
	}
	for key, values := range caller.GetExtra() {
		spec.Extra[key] = values
	}
	answer, err := a.chain.Holds(ctx, spec, "create")
	if err != nil {
		return false, err
	}
	if answer.AllowsGeneric() {
		return true, nil
	}
	return false, answer.Failure
}
