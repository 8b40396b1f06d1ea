package corpus

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
)

// Recorder is a validating webhook that allows everything and remembers the last request of each key.
type Recorder struct {
	// user is the name of the user that replays requests, a member of system:masters. Requests of other members are not recorded.
	user   string
	key    func(*admissionv1.AdmissionRequest) string
	server *httptest.Server

	mu   sync.Mutex
	last map[string]*admissionv1.AdmissionRequest
}

// NewRecorder serves a recorder. Requests with the same key belong together.
func NewRecorder(user string, key func(*admissionv1.AdmissionRequest) string) *Recorder {
	r := &Recorder{user: user, key: key, last: map[string]*admissionv1.AdmissionRequest{}}
	r.server = httptest.NewTLSServer(http.HandlerFunc(r.serve))
	return r
}

// Close stops the recorder.
func (r *Recorder) Close() { r.server.Close() }

// Take returns the last request of a key and forgets it; nil if there was none.
func (r *Recorder) Take(key string) *admissionv1.AdmissionRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	req := r.last[key]
	delete(r.last, key)
	return req
}

// Manifest is the static webhook configuration of the recorder.
func (r *Recorder) Manifest() ([]byte, error) {
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	return json.MarshalIndent(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       "ValidatingWebhookConfiguration",
		"metadata":   map[string]any{"name": "recorder.static.k8s.io"},
		"webhooks": []any{map[string]any{
			"name":                    "recorder.static.k8s.io",
			"clientConfig":            map[string]any{"url": r.server.URL, "caBundle": bundle},
			"rules":                   []any{map[string]any{"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*/*"}, "operations": []any{"CREATE", "UPDATE", "DELETE"}}},
			"failurePolicy":           "Fail",
			"matchPolicy":             "Equivalent",
			"sideEffects":             "None",
			"admissionReviewVersions": []any{"v1"},
			"matchConditions": []any{map[string]any{
				"name":       "not-masters",
				"expression": fmt.Sprintf("request.userInfo.username == %q || !('system:masters' in request.userInfo.groups)", r.user),
			}},
		}},
	}, "", "  ")
}

func (r *Recorder) serve(w http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no AdmissionReview", http.StatusBadRequest)
		return
	}
	// Probes for the same objects arrive between the requests of users.
	if review.Request.UserInfo.Username != admission.ProbeUser {
		r.mu.Lock()
		r.last[r.key(review.Request)] = review.Request
		r.mu.Unlock()
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		panic(http.ErrAbortHandler)
	}
}
