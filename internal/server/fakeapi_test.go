package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/admission"
)

// fakeAPI is the part of an API server that fieldperm-webhook follows and asks, with faults on demand. Tests with a real control
// plane check the same against a real API server.
type fakeAPI struct {
	*httptest.Server

	mu    sync.Mutex
	down  bool
	holds []string
	// admit is called for every PATCH and POST of an object; nil allows all.
	admit func(*admissionv1.AdmissionRequest) (code int, message string)
	// metrics is the content of /metrics.
	metrics string
	// hold blocks SubjectAccessReviews until it is closed. asked receives a value before each of them blocks.
	hold, asked chan struct{}
}

func newFakeAPI(t testing.TB) *fakeAPI {
	t.Helper()
	api := &fakeAPI{asked: make(chan struct{}, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi/v3", reply(`{"paths":{}}`))
	mux.HandleFunc("GET /api", reply(`{"kind":"APIVersions","versions":["v1"]}`))
	mux.HandleFunc("GET /apis", reply(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`))
	mux.HandleFunc("GET /api/v1", reply(`{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`))
	mux.HandleFunc("GET /apis/apps/v1", reply(`{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["create","get","update"]}]}`))
	mux.HandleFunc("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions", listOrWatch("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
	mux.HandleFunc("GET /apis/apiregistration.k8s.io/v1/apiservices", listOrWatch("apiregistration.k8s.io/v1", "APIService"))
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", api.review)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		api.mu.Lock()
		defer api.mu.Unlock()
		_, _ = w.Write([]byte(api.metrics))
	})
	mux.HandleFunc("PATCH /", api.write)
	mux.HandleFunc("POST /api/v1/namespaces/kube-system/configmaps", api.write)
	mux.HandleFunc("DELETE /api/v1/namespaces/kube-system/configmaps/{name}", api.write)
	mux.HandleFunc("POST /api/v1/namespaces/kube-system/pods/{name}/exec", api.write)
	api.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.mu.Lock()
		down := api.down
		api.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	t.Cleanup(api.CloseClientConnections)
	return api
}

func (api *fakeAPI) review(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	api.mu.Lock()
	hold := api.hold
	review.Status.Allowed = slices.Contains(api.holds, review.Spec.ResourceAttributes.Verb)
	api.mu.Unlock()
	api.asked <- struct{}{}
	if hold != nil {
		<-hold
	}
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// write responds to a canary like an API server after authorization. It stores nothing.
func (api *fakeAPI) write(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group, rest := "", path[2:]
	if path[0] == "apis" {
		group, rest = path[1], path[3:]
	}
	dry := r.URL.Query().Get("dryRun") == "All"
	req := &admissionv1.AdmissionRequest{
		UID: "u-1", Operation: admissionv1.Create, DryRun: &dry, Namespace: rest[1],
		Resource: metav1.GroupVersionResource{Group: group, Version: "v1", Resource: rest[2]},
		UserInfo: authenticationv1.UserInfo{
			Username: r.Header.Get("Impersonate-User"),
			Extra:    map[string]authenticationv1.ExtraValue{admission.CanaryKey: r.Header.Values("Impersonate-Extra-Fieldperm.dev%2fcanary")},
		},
	}
	if len(rest) > 3 {
		req.Name = rest[3]
	}
	switch r.Method {
	case http.MethodPatch:
		req.Operation = admissionv1.Update
	case http.MethodDelete:
		req.Operation = admissionv1.Delete
	}
	if len(rest) > 4 {
		req.Operation, req.SubResource = admissionv1.Connect, rest[4]
	}
	api.mu.Lock()
	admit := api.admit
	api.mu.Unlock()
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	code := http.StatusOK
	if admit != nil {
		var message string
		if code, message = admit(req); code != http.StatusOK {
			status.Status, status.Code, status.Message = metav1.StatusFailure, int32(code), message
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status)
}

func (api *fakeAPI) set(change func()) {
	api.mu.Lock()
	defer api.mu.Unlock()
	change()
}

func reply(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}
}

// listOrWatch serves an empty list, and watches without events.
func listOrWatch(apiVersion, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
			return
		}
		if r.URL.Query().Get("sendInitialEvents") != "" {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{"apiVersion": apiVersion, "kind": kind,
				"metadata": map[string]any{"resourceVersion": "1", "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}})
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}
