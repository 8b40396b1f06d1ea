package authz

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	kjson "sigs.k8s.io/json"
)

// mostAnswer is larger than any review, in bytes. Without a limit, client-go would read on.
const mostAnswer = 1 << 20

// judged returns an error for responses that k8s.io/apiserver would wrongly take for NoOpinion (P4): a document without
// status.allowed, and a review of a chain in which an authorizer failed. It does not follow redirects: the question and the
// credentials are meant for one address only.
type judged struct{ base http.RoundTripper }

// inconclusive is the error for a review with no opinion and an evaluationError: for example, a kube-apiserver returns it when a
// webhook of its own chain is down. The webhook that fieldperm asked did not fail, so its failurePolicy does not apply. Another
// authorizer may still allow the request. The decision is not cached.
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
