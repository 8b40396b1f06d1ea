package review

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// refusal is an error with its own HTTP status. It is not a denial: nothing was decided.
type refusal struct {
	code int
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refusef(code int, format string, args ...any) error {
	return &refusal{code: code, err: fmt.Errorf(format, args...)}
}

// codeOf returns the HTTP status of an error: the status of a refusal, else the one that admission uses. An object that does not
// fit its schema is the caller's fault here, because no API server has accepted it.
func codeOf(err error) int {
	var r *refusal
	var invalid *fieldperm.InvalidObjectError
	switch {
	case errors.As(err, &r):
		return r.code
	case errors.As(err, &invalid):
		return http.StatusBadRequest
	}
	return int(admission.Code(err))
}
