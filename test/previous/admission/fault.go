package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm"
)

// fault is an error with an HTTP code. Every other error is a 500. Errors are never a denial by policy and never an Allow (P4).
type fault struct {
	code int32
	err  error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// badRequest returns an error for a request that can never be decided in its present form.
func badRequest(format string, args ...any) error {
	return &fault{code: http.StatusBadRequest, err: fmt.Errorf(format, args...)}
}

// refused returns an error for a request that holds no review.
func refused(code int32, format string, args ...any) error {
	return &fault{code: code, err: fmt.Errorf(format, args...)}
}

// errNoShare means that a user has too many reviews at the same time.
var errNoShare = refused(http.StatusTooManyRequests, "the reviews of this user that are being answered hold their share of memory: try again, or send fewer at once")

// unavailable returns an error for a request that can be decided later. The client should try again.
func unavailable(format string, args ...any) error {
	return &fault{code: http.StatusServiceUnavailable, err: fmt.Errorf(format, args...)}
}

// Code returns the HTTP code of an error of this package: 405, 413, 415 or 429 for a request that is not reviewed, 400 for one that can
// never be decided, 503 for one that can be decided later or whose review ran out of time, else 500. An object that does not fit its
// schema is a 500: the API server accepted the object, so the loaded schema is wrong.
func Code(err error) int32 {
	var f *fault
	var invalid *fieldperm.InvalidObjectError
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &invalid):
		return http.StatusInternalServerError
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// RetryAfterSeconds is how many seconds a client should wait before it tries again. The schema of a new kind takes about that long to
// compile.
const RetryAfterSeconds = 1

// failure returns the status of an error.
func failure(err error) *metav1.Status {
	s := &metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: Code(err)}
	switch s.Code {
	case http.StatusBadRequest:
		s.Reason = metav1.StatusReasonBadRequest
	case http.StatusServiceUnavailable:
		s.Reason = metav1.StatusReasonServiceUnavailable
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: RetryAfterSeconds}
	default:
		s.Reason = metav1.StatusReasonInternalError
	}
	return s
}
