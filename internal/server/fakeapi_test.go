package server

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/test/fakeapi"
)

// fakeAPI is the part of an API server that fieldperm-webhook follows and asks, with faults on demand. Tests with a real control
// plane check the same against a real API server.
type fakeAPI struct {
	*fakeapi.Server

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
	mux := fakeapi.Mux(&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{}}, &metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", Namespaced: true, Kind: "Deployment", Verbs: metav1.Verbs{"create", "get", "update"}},
	}})
	mux.Handle("POST "+fakeapi.ReviewsPath, fakeapi.Reviews(api.review))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		api.mu.Lock()
		defer api.mu.Unlock()
		_, _ = w.Write([]byte(api.metrics))
	})
	mux.HandleFunc("PATCH /", api.write)
	mux.HandleFunc("POST /api/v1/namespaces/kube-system/configmaps", api.write)
	mux.HandleFunc("DELETE /api/v1/namespaces/kube-system/configmaps/{name}", api.write)
	mux.HandleFunc("POST /api/v1/namespaces/kube-system/pods/{name}/exec", api.write)
	api.Server = fakeapi.Plain(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.mu.Lock()
		down := api.down
		api.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return api
}

func (api *fakeAPI) review(_ *http.Request, review *authorizationv1.SubjectAccessReview) error {
	api.mu.Lock()
	hold := api.hold
	review.Status.Allowed = slices.Contains(api.holds, review.Spec.ResourceAttributes.Verb)
	api.mu.Unlock()
	api.asked <- struct{}{}
	if hold != nil {
		<-hold
	}
	return nil
}

// write responds to a probe like an API server after authorization. It stores nothing.
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
			Extra:    map[string]authenticationv1.ExtraValue{admission.ProbeKey: r.Header.Values("Impersonate-Extra-Fieldperm.dev%2fprobe")},
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
	code, message := http.StatusOK, ""
	if admit != nil {
		code, message = admit(req)
	}
	fakeapi.Status(w, code, message)
}

func (api *fakeAPI) set(change func()) {
	api.mu.Lock()
	defer api.mu.Unlock()
	change()
}
