package authz

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// backend is the SubjectAccessReview API, for faults that a real one does not have on demand.
type backend struct {
	mu     sync.Mutex
	asked  []authorizationv1.SubjectAccessReviewSpec
	answer func(n int, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int)
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	b.asked = append(b.asked, review.Spec)
	status, code := b.answer(len(b.asked), review.Spec)
	b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if code != http.StatusOK {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReasonInternalError})
		return
	}
	review.APIVersion, review.Kind, review.Status = "authorization.k8s.io/v1", "SubjectAccessReview", status
	_ = json.NewEncoder(w).Encode(review)
}

func (b *backend) authorizer(t *testing.T, ttl time.Duration) authorizer.Authorizer {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(clients.AuthorizationV1(), ttl, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func request() *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Resource:  metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Namespace: "shop", Name: "web",
		UserInfo: authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: []string{"team"}, Extra: map[string]authenticationv1.ExtraValue{"example.com/scopes": {"a", "b"}}},
	}
}

func TestP8_AnswersAreKeptAllowedAndDenied(t *testing.T) {
	b := &backend{answer: func(_ int, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: spec.ResourceAttributes.Verb == "granular:scale", Reason: "RBAC: it says so"}, http.StatusOK
	}}
	a := For(b.authorizer(t, time.Hour), request())
	for range 3 {
		for verb, want := range map[string]bool{"granular:scale": true, "granular:image": false} {
			answer, err := a.Authorize(t.Context(), verb, false)
			if err != nil || answer.Allowed != want || answer.Reason != "RBAC: it says so" {
				t.Errorf("%s: %+v, %v", verb, answer, err)
			}
		}
	}
	if len(b.asked) != 2 {
		t.Errorf("asked %d times, want 2", len(b.asked))
	}
}

func TestP4_ErrorOfTheBackendIsAnErrorAndIsNotKept(t *testing.T) {
	failing := true
	b := &backend{answer: func(int, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		if failing {
			return authorizationv1.SubjectAccessReviewStatus{}, http.StatusInternalServerError
		}
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, http.StatusOK
	}}
	a := For(b.authorizer(t, time.Hour), request())
	if answer, err := a.Authorize(t.Context(), "update", true); err == nil || answer.Allowed {
		t.Fatalf("got %+v, %v", answer, err)
	} else if !strings.Contains(err.Error(), `"update"`) {
		t.Errorf("error does not name the verb: %v", err)
	}
	b.mu.Lock()
	failing = false
	b.mu.Unlock()
	if answer, err := a.Authorize(t.Context(), "update", true); err != nil || !answer.Allowed {
		t.Errorf("after the fault: %+v, %v", answer, err)
	}
}

func TestP4_BothAllowedAndDeniedIsNoAllow(t *testing.T) {
	b := &backend{answer: func(int, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, http.StatusOK
	}}
	if answer, err := For(b.authorizer(t, time.Hour), request()).Authorize(t.Context(), "update", true); err == nil || answer.Allowed {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func TestA4_OnlyChecksForTheGenericPermissionCarryTheKey(t *testing.T) {
	b := &backend{answer: func(int, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{}, http.StatusOK
	}}
	chain := b.authorizer(t, 0)
	req := request()
	// A user may happen to have the key, in any case.
	req.UserInfo.Extra["Fieldperm.dev/Generic-Only"] = authenticationv1.ExtraValue{"mine"}
	a := For(chain, req)
	for _, generic := range []bool{true, false} {
		if _, err := a.Authorize(t.Context(), "update", generic); err != nil {
			t.Fatal(err)
		}
		spec := b.asked[len(b.asked)-1]
		want := map[string]authorizationv1.ExtraValue{"example.com/scopes": {"a", "b"}}
		if generic {
			want[admission.GenericOnlyKey] = authorizationv1.ExtraValue{"true"}
		}
		if !reflect.DeepEqual(spec.Extra, want) {
			t.Errorf("generic=%t: extra is %v, want %v", generic, spec.Extra, want)
		}
		if spec.User != "alice" || spec.UID != "7" || !reflect.DeepEqual(spec.Groups, []string{"team"}) {
			t.Errorf("asked for %+v", spec)
		}
	}
}

func TestD11_AskedForTheResourceThatTheUserAddressed(t *testing.T) {
	plain, equivalent := request(), request()
	plain.SubResource = "status"
	equivalent.SubResource, equivalent.RequestSubResource = "scale", "scale"
	equivalent.RequestResource = &metav1.GroupVersionResource{Group: "extensions", Version: "v1beta1", Resource: "deployments"}
	mainResource := request()
	mainResource.RequestResource = &metav1.GroupVersionResource{Group: "apps", Version: "v1beta1", Resource: "deployments"}
	for name, c := range map[string]struct {
		req  *admissionv1.AdmissionRequest
		want authorizationv1.ResourceAttributes
	}{
		"as it is":   {plain, authorizationv1.ResourceAttributes{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "status"}},
		"equivalent": {equivalent, authorizationv1.ResourceAttributes{Group: "extensions", Version: "v1beta1", Resource: "deployments", Subresource: "scale"}},
		"version":    {mainResource, authorizationv1.ResourceAttributes{Group: "apps", Version: "v1beta1", Resource: "deployments"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got authorizer.Attributes
			_, err := For(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				got = a
				return authorizer.DecisionNoOpinion, "", nil
			}), c.req).Authorize(t.Context(), "granular:scale", false)
			if err != nil {
				t.Fatal(err)
			}
			if got.GetAPIGroup() != c.want.Group || got.GetAPIVersion() != c.want.Version || got.GetResource() != c.want.Resource || got.GetSubresource() != c.want.Subresource ||
				got.GetNamespace() != "shop" || got.GetName() != "web" || got.GetVerb() != "granular:scale" || !got.IsResourceRequest() {
				t.Errorf("asked %+v", got)
			}
		})
	}
}

func TestA1_ReviewIsAskedWithTheSameAttributes(t *testing.T) {
	spec := &authorizationv1.SubjectAccessReviewSpec{
		User: "alice", Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "update", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Name: "web"},
	}
	var got authorizer.Attributes
	answer, err := ForReview(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		got = a
		return authorizer.DecisionDeny, "no", nil
	}), spec).Authorize(t.Context(), "granular", false)
	if err != nil || answer != (fieldperm.Answer{Reason: "no"}) {
		t.Errorf("got %+v, %v", answer, err)
	}
	if got.GetVerb() != "granular" || got.GetNamespace() != "shop" || got.GetName() != "web" || got.GetSubresource() != "scale" || got.GetUser().GetExtra()["k"][0] != "v" {
		t.Errorf("asked %+v", got)
	}
}
