package admission

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drawnText is a text with characters that need care.
func drawnText(r *rand.Rand) string {
	parts := []string{"", "a", "granular:label(a.b/c)", `"`, `\`, "<", ">", "&", "\n", "\x00", "\x7f", "é", "\u2028", "\xff", " ~", ",…+3"}
	if r.IntN(3) > 0 {
		parts = parts[:5] // As in most answers.
	}
	out := ""
	for range r.IntN(4) {
		out += parts[r.IntN(len(parts))]
	}
	return out
}

// TestWire_AnswersAreThoseOfTheLibrary: byte for byte.
func TestWire_AnswersAreThoseOfTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 3617))
	quick := 0
	for range 20000 {
		response := &admissionv1.AdmissionResponse{UID: types.UID(drawnText(r)), Allowed: r.IntN(4) > 0}
		if r.IntN(4) > 0 {
			response.AuditAnnotations = map[string]string{}
			for range r.IntN(10) {
				response.AuditAnnotations[drawnText(r)] = drawnText(r)
			}
		}
		switch r.IntN(10) {
		case 0:
			response.Result = &metav1.Status{Message: drawnText(r)}
		case 1:
			response.Warnings = []string{drawnText(r)}
		case 2:
			response.Patch = []byte(drawnText(r))
		case 3:
			kind := admissionv1.PatchTypeJSONPatch
			response.PatchType = &kind
		}
		if _, ok := appendAllowed(nil, response); ok {
			quick++
		}
		got, err := encodeReview(response)
		if want := marshalled(t, admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionVersion}, Response: response}); err != nil || string(got) != want {
			t.Fatalf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	if quick < 1000 {
		t.Errorf("%d answers without the library: the draw proves little", quick)
	}
}

// TestWire_AnswersToAuthorizationHaveTheStatus: as the whole review has it.
func TestWire_AnswersToAuthorizationHaveTheStatus(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3617))
	quick := 0
	for range 20000 {
		status := authorizationv1.SubjectAccessReviewStatus{Allowed: r.IntN(2) > 0, Reason: drawnText(r)}
		switch r.IntN(8) {
		case 0:
			status.Denied = true
		case 1:
			status.EvaluationError = drawnText(r)
		}
		if _, ok := appendAccess(nil, status); ok {
			quick++
		}
		got, err := encodeAccess(status)
		if want := fmt.Sprintf(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":%s}`, marshalled(t, status)); err != nil || string(got) != want {
			t.Fatalf("got  %s, %v\nwant %s", got, err, want)
		}
		var read authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(got, &read); err != nil || read.Status.Allowed != status.Allowed || read.Status.Denied != status.Denied {
			t.Fatalf("%s is read as %v, %v", got, read.Status, err)
		}
	}
	if quick < 1000 {
		t.Errorf("%d answers without the library: the draw proves little", quick)
	}
}
