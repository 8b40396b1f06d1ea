package wire

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	reviewKind    = "SubjectAccessReview"
	reviewVersion = "authorization.k8s.io/v1"
)

// ReadReview reads what Ask writes: a SubjectAccessReview of v1 as JSON. handles reports whether the peer handles conditions in the dialect. A
// review in another dialect, or in none, does not.
func (d Dialect) ReadReview(body []byte) (spec *authorizationv1.SubjectAccessReviewSpec, handles bool, err error) {
	if len(body) > maxBytes {
		return nil, false, fmt.Errorf("review: has %d bytes: send at most %d", len(body), maxBytes)
	}
	review, err := object("review", body)
	if err != nil {
		return nil, false, err
	}
	if err := isOf(review, reviewVersion, reviewKind); err != nil {
		return nil, false, err
	}
	if handles, err = d.Handles(review["spec"]); err != nil {
		return nil, false, err
	}
	spec = &authorizationv1.SubjectAccessReviewSpec{}
	if err := json.Unmarshal(review["spec"], spec); err != nil {
		return nil, false, fmt.Errorf("spec: %w", err)
	}
	return spec, handles, nil
}

// AnswerReview returns the answer to a review as JSON. handles is the result of ReadReview.
func (d Dialect) AnswerReview(spec *authorizationv1.SubjectAccessReviewSpec, decision authorizer.ConditionsAwareDecision, handles bool) ([]byte, error) {
	status, err := d.Status(decision, handles)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"apiVersion": reviewVersion, "kind": reviewKind, "spec": spec, "status": jsontext.Value(status)}, json.Deterministic(true))
}

// isOf returns an error unless a document is of a version and a kind.
func isOf(document map[string]jsontext.Value, version, kind string) error {
	for field, want := range map[string]string{"apiVersion": version, "kind": kind} {
		var is string
		if err := json.Unmarshal(document[field], &is); err != nil || is != want {
			return fmt.Errorf("review.%s: is not %q: send a %s of %s", field, want, kind, version)
		}
	}
	return nil
}
