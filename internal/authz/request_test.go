package authz

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// served returns the default chain in front of a stand-in for a kube-apiserver.
func served(t *testing.T, ttl time.Duration, a answer) (*Chain, *remote) {
	t.Helper()
	r := newRemote(t, a)
	chain, err := NewChain(t.Context(), Settings{TTL: ttl, Cluster: r.Config()})
	if err != nil {
		t.Fatal(err)
	}
	return chain, r
}

func TestP8_AllowAndDenyAreCached(t *testing.T) {
	chain, r := served(t, time.Hour, func(w http.ResponseWriter, req *http.Request, review *authorizationv1.SubjectAccessReview) {
		status(authorizationv1.SubjectAccessReviewStatus{Allowed: review.Spec.ResourceAttributes.Verb == "granular:scale", Reason: "RBAC: it says so"})(w, req, review)
	})
	a := chain.For(request())
	for range 3 {
		for verb, want := range map[string]bool{"granular:scale": true, "granular:image": false} {
			answer, err := a.Authorize(t.Context(), verb, false)
			if err != nil || answer.Allowed() != want || !strings.HasSuffix(answer.Reason, "RBAC: it says so") {
				t.Errorf("%s: %+v, %v", verb, answer, err)
			}
		}
	}
	if n := r.questions(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

func TestP4_ErrorOfTheBackendIsAnErrorAndIsNotCached(t *testing.T) {
	chain, r := served(t, time.Hour, code(http.StatusInternalServerError))
	a := chain.For(request())
	answer, err := a.Authorize(t.Context(), "update", true)
	if err == nil || answer != (fieldperm.AuthorizerDecision{}) {
		t.Fatalf("got %+v, %v", answer, err)
	}
	for _, part := range []string{`"update"`, `"deployments"`, `"in-cluster-authorizer"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error does not name %s: %v", part, err)
		}
	}
	r.become(allow(""))
	if answer, err := a.Authorize(t.Context(), "update", true); err != nil || !answer.Allowed() {
		t.Errorf("after the fault: %+v, %v", answer, err)
	}
}

func TestA4_OnlyChecksForTheGenericPermissionCarryTheKey(t *testing.T) {
	chain, r := served(t, 0, pass())
	req := request()
	// A user's own extra may have the key, in upper or lower case.
	req.UserInfo.Extra["Fieldperm.dev/Generic-Only"] = authenticationv1.ExtraValue{"mine"}
	a := chain.For(req)
	for _, generic := range []bool{true, false} {
		if _, err := a.Authorize(t.Context(), "update", generic); err != nil {
			t.Fatal(err)
		}
		spec := r.last().Spec
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

func TestD11_ChecksUseTheAddressedResource(t *testing.T) {
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
		"unchanged":  {plain, authorizationv1.ResourceAttributes{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "status"}},
		"equivalent": {equivalent, authorizationv1.ResourceAttributes{Group: "extensions", Version: "v1beta1", Resource: "deployments", Subresource: "scale"}},
		"version":    {mainResource, authorizationv1.ResourceAttributes{Group: "apps", Version: "v1beta1", Resource: "deployments"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got authorizer.Attributes
			chain := Fixed("x", authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				got = a
				return authorizer.DecisionNoOpinion, "", nil
			}))
			if _, err := chain.For(c.req).Authorize(t.Context(), "granular:scale", false); err != nil {
				t.Fatal(err)
			}
			if got.GetAPIGroup() != c.want.Group || got.GetAPIVersion() != c.want.Version || got.GetResource() != c.want.Resource || got.GetSubresource() != c.want.Subresource ||
				got.GetNamespace() != "shop" || got.GetName() != "web" || got.GetVerb() != "granular:scale" || !got.IsResourceRequest() {
				t.Errorf("asked %+v", got)
			}
		})
	}
}

func TestA1_ReviewChecksTheSameAttributes(t *testing.T) {
	spec := &authorizationv1.SubjectAccessReviewSpec{
		User: "alice", Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "update", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Name: "web"},
	}
	var got authorizer.Attributes
	answer, err := Fixed("x", authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		got = a
		return authorizer.DecisionDeny, "no", nil
	})).ForReview(spec).Authorize(t.Context(), "granular", false)
	if err != nil || answer != (fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: "no", By: "x"}) {
		t.Errorf("got %+v, %v", answer, err)
	}
	if got.GetVerb() != "granular" || got.GetNamespace() != "shop" || got.GetName() != "web" || got.GetSubresource() != "scale" || got.GetUser().GetExtra()["k"][0] != "v" {
		t.Errorf("asked %+v", got)
	}
}
