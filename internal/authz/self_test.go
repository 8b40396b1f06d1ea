package authz

import (
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/fieldperm"
)

func selfOf(t *testing.T, r *remote, name string) *Chain {
	t.Helper()
	c, err := Self(r.Config(), &user.DefaultInfo{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSelfAsksAboutItsOwnUserOnceForEachVerb(t *testing.T) {
	r := newRemote(t, allow("RBAC: allowed"))
	c := selfOf(t, r, "alice")
	for range 2 {
		answer, err := c.For(by("alice")).Authorize(t.Context(), "granular:scale", false)
		if err != nil || answer != (fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: "RBAC: allowed", By: selfName}) {
			t.Errorf("got %+v, %v", answer, err)
		}
	}
	if r.questions() != 1 || r.paths[0] != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		t.Fatalf("asked %d times at %q", r.questions(), r.paths)
	}
	want := authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "granular:scale", Group: "apps", Version: "v1", Resource: "deployments", Name: "web"}
	if got := r.last().Spec; got.ResourceAttributes == nil || *got.ResourceAttributes != want || got.User != "" || got.Extra != nil {
		t.Errorf("asked %+v", got)
	}
	if answer, err := c.For(by("bob")).Authorize(t.Context(), "granular:scale", false); err == nil || answer.Allowed() || !strings.Contains(err.Error(), `another user than "alice"`) {
		t.Errorf("about another user: %+v, %v", answer, err)
	}
}

// fieldperm's own Allow of a generic verb has its prefix: a user with the marker does not hold update.
func TestA4_SelfTellsTheAllowOfFieldpermApart(t *testing.T) {
	c := selfOf(t, newRemote(t, allow(`granular: the user holds "granular"`)), "alice")
	answer, err := c.For(by("alice")).Authorize(t.Context(), "update", true)
	if err != nil || !answer.Allowed() || answer.AllowsGeneric() {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func TestP4_SelfReturnsErrorsInPlaceOfDenials(t *testing.T) {
	for name, c := range map[string]struct {
		is   answer
		want string
	}{
		"failure":             {code(http.StatusInternalServerError), "SelfSubjectAccessReview"},
		"forbidden":           {code(http.StatusForbidden), "selfsubjectaccessreviews"},
		"no review":           {body(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1"}`), "status.allowed"},
		"other kind":          {body(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`), "status.allowed"},
		"failed authorizer":   {status(authorizationv1.SubjectAccessReviewStatus{EvaluationError: "granter: connection refused"}), "connection refused"},
		"allowed and denied":  {both(), "both allows and denies"},
		"connection that was": {drop(), "SelfSubjectAccessReview"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, c.is)
			chain := selfOf(t, r, "alice")
			if d, err := decide(t, chain); err == nil || d.Allowed || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v", d, err)
			}
			r.become(allow(""))
			if d, err := decide(t, chain); err != nil || !d.Allowed {
				t.Errorf("the failure is cached: %+v, %v", d, err)
			}
		})
	}
	if d, err := decide(t, selfOf(t, newRemote(t, deny("no")), "alice")); err != nil || d.Allowed || d.Denial == nil {
		t.Errorf("denied: %+v, %v", d, err)
	}
	if d, err := decide(t, selfOf(t, newRemote(t, pass()), "alice")); err != nil || d.Allowed || d.Denial == nil {
		t.Errorf("no opinion: %+v, %v", d, err)
	}
}
