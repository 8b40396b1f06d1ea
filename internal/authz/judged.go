package authz

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	kjson "sigs.k8s.io/json"
)

// mostAnswer is more than any review has. client-go would read on.
const mostAnswer = 1 << 20

// judged fails what k8s.io/apiserver would take for a webhook without an opinion though it is no answer
// (P4): a document that does not say whether it is allowed, and a review of a chain that failed itself.
// It follows no redirect: the question, and the credentials, are for one address.
type judged struct{ base http.RoundTripper }

// inconclusive is an answer of no opinion for which somebody failed: a kube-apiserver of whose chain a
// webhook is down says so. It is not the asked one's failure, so that its failurePolicy does not apply:
// whoever else allows it, allows it, and it is not kept.
type inconclusive struct{ cause string }

func (i *inconclusive) Error() string {
	return "did not allow it, for an authorizer of its own failed: " + i.cause
}

// RoundTrip implements http.RoundTripper.
func (j judged) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := j.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close()
		return nil, fmt.Errorf("answers %q: write the address that it redirects to", response.Status)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, mostAnswer), response.Body}
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	if len(body) > mostAnswer {
		return nil, fmt.Errorf("answers with more than %d bytes", mostAnswer)
	}
	var review struct {
		Kind   string `json:"kind"`
		Status *struct {
			Allowed *bool  `json:"allowed"`
			Denied  *bool  `json:"denied"`
			Failure string `json:"evaluationError"`
		} `json:"status"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(body, &review) == nil {
		switch s := review.Status; {
		case review.Kind != "SubjectAccessReview" || s == nil || s.Allowed == nil && s.Denied == nil:
			return nil, errors.New("answers with what is no SubjectAccessReview that has status.allowed")
		case s.Failure != "" && !(s.Allowed != nil && *s.Allowed):
			if s.Denied == nil || !*s.Denied {
				return nil, &inconclusive{s.Failure}
			}
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
