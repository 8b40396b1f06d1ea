package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fakeAPI is as much of an API server as fieldperm-webhook follows and asks, with faults on demand.
// That the real one is followed is what the tests against the real control plane show.
type fakeAPI struct {
	*httptest.Server

	mu    sync.Mutex
	down  bool
	holds []string
	// hold makes SubjectAccessReviews wait until it is closed; asked is sent to before.
	hold, asked chan struct{}
}

func newFakeAPI(t *testing.T) *fakeAPI {
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

// listOrWatch has nothing of the kind, and nothing ever happens to it.
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
