package fakeapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReviewsPath is where an API server answers SubjectAccessReviews.
const ReviewsPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

// Reviews answers SubjectAccessReviews, as an API server and as an authorization webhook. decide sets the status of a review. Its error is
// the answer (Fail).
func Reviews(decide func(*http.Request, *authorizationv1.SubjectAccessReview) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			Fail(w, apierrors.NewBadRequest(err.Error()))
			return
		}
		if err := decide(r, &review); err != nil {
			Fail(w, err)
			return
		}
		review.TypeMeta = metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"}
		JSON(w, http.StatusCreated, review)
	}
}

// Text answers with a JSON text.
func Text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// JSON answers with a code and a value. The client gets no answer if the value has no JSON.
func JSON(w http.ResponseWriter, code int, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

// reasons are those of the codes that have one.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
}

// Status answers with a Status: success for 200, else a failure with the reason of the code.
func Status(w http.ResponseWriter, code int, message string) {
	status := metav1.Status{Status: metav1.StatusSuccess, Code: int32(code), Message: message, Reason: reasons[code]}
	if code != http.StatusOK {
		status.Status = metav1.StatusFailure
	}
	write(w, status)
}

// Fail answers with the Status of an error of k8s.io/apimachinery/pkg/api/errors. Any other error is an internal one.
func Fail(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	write(w, known.Status())
}

func write(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	JSON(w, int(status.Code), status)
}
