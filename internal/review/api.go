package review

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/schema"
)

// API serves the review API. The zero API refuses every request.
type API struct {
	Reviewer *admission.Reviewer
	// Schema returns the permission schema in force, or nil if there is none yet.
	Schema func() *schema.Schema
	// MayReview reports whether the caller may create subjectaccessreviews, and so ask about other users. With nil, no caller may.
	MayReview func(ctx context.Context, caller user.Info) (bool, error)
	// MaxBytes bounds the body of a request; 0 refuses every body.
	MaxBytes int64
}

// patience bounds the time of one request. It is the default timeout that an API server uses for a webhook.
const patience = 10 * time.Second

// ReviewHandler serves POST /review. The body is an AdmissionReview v1; its request is a write that may be incomplete. The response
// is the report as JSON, in the same form for allowed and denied. Nothing is written. Without .request.userInfo the question is
// about the caller. A caller that asks about another user needs the permission that MayReview checks. A user with the caller's name
// but other groups is another user.
func (a API) ReviewHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		// Never log contents of objects. Log user names only at the levels at which the API server does.
		log := klog.FromContext(ctx).WithValues("endpoint", "review")
		decided, err := a.review(klog.NewContext(ctx, log), w, r)
		var body []byte
		if err == nil {
			body, err = decided.JSON()
		}
		if err != nil {
			refuse(log, w, err, http.MethodPost)
			return
		}
		log.V(4).Info("Answered", "allowed", decided.Allowed, "mode", decided.Mode, "changes", len(decided.Changes), "checks", len(decided.Checks))
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(body); err != nil {
			log.V(2).Info("Response was not read", "err", err)
		}
	})
}

func (a API) review(ctx context.Context, w http.ResponseWriter, r *http.Request) (*Report, error) {
	caller, err := callerOf(r)
	if err != nil {
		return nil, err
	}
	question, err := readQuestion(w, r.WithContext(ctx), a.MaxBytes)
	if err != nil {
		return nil, err
	}
	if question.UserInfo, err = a.subject(ctx, caller, question.UserInfo); err != nil {
		return nil, err
	}
	if err := complete(question); err != nil {
		return nil, err
	}
	if a.Reviewer == nil {
		return nil, errors.New("review: has no reviewer: configure one")
	}
	decided, err := Decide(ctx, a.Reviewer, question, maxReport)
	if errors.Is(err, schema.ErrUnknownKind) {
		return nil, refusef(http.StatusServiceUnavailable, "%w; if .request.kind is misspelt, GET /permissions lists the kinds", err)
	}
	if errors.Is(err, ErrTooLong) {
		return nil, refusef(http.StatusRequestEntityTooLarge, "%w", err)
	}
	return decided, err
}

// maxReport bounds the size of a response, because several are in memory at the same time.
const maxReport = 4 << 20

// callerOf returns the user that sent the request.
func callerOf(r *http.Request) (user.Info, error) {
	caller, ok := request.UserFrom(r.Context())
	if !ok || caller == nil || caller.GetName() == "" {
		return nil, refusef(http.StatusUnauthorized, "caller is not authenticated: present a client certificate or a bearer token")
	}
	return caller, nil
}

// refuse responds with the error. allow lists the methods of the path.
func refuse(log klog.Logger, w http.ResponseWriter, err error, allow string) {
	code := codeOf(err)
	if code == http.StatusInternalServerError {
		log.Error(err, "No answer", "code", code)
	} else {
		// Without a verbosity level, any caller could fill the log with these lines.
		log.V(2).Info("Refused a request", "code", code, "reason", err.Error())
	}
	switch code {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", allow)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(admission.RetryAfterSeconds))
	}
	http.Error(w, err.Error(), code)
}
