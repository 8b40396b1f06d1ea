package review

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// holds is an authorizer by verbs per user. It records the users that it was asked about.
type holds struct {
	verbs map[string][]string
	// err is returned instead of a decision.
	err   error
	asked []admissionv1.AdmissionRequest
}

func (h *holds) For(req *admissionv1.AdmissionRequest) fieldperm.Authorizer {
	h.asked = append(h.asked, *req)
	return heldBy{h, h.verbs[req.UserInfo.Username]}
}

type heldBy struct {
	all   *holds
	verbs []string
}

func (h heldBy) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(slices.Contains(h.verbs, verb))}, h.all.err
}

const maxBytes = 1 << 20

// fixture is an API in which alice may scale, bob may update, and sarah may ask about others.
type fixture struct {
	API
	grants    *holds
	reviewErr error
}

func newFixture(t testing.TB) *fixture {
	s := schematest.Schema(t)
	f := &fixture{grants: &holds{verbs: map[string][]string{"alice": {"granular", "granular:scale"}, "bob": {"update"}}}}
	current := func() *schema.Schema { return s }
	f.API = API{
		Reviewer: &admission.Reviewer{Schema: current, Authorizer: f.grants.For},
		Schema:   current,
		MayReview: func(_ context.Context, caller user.Info) (bool, error) {
			return caller.GetName() == "sarah", f.reviewErr
		},
		MaxBytes: maxBytes,
	}
	return f
}

func named(name string, groups ...string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: name, Groups: append(groups, "system:authenticated")}
}

// post sends a body to /review as a caller; nil sends it without a user.
func (f *fixture) post(caller user.Info, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/review", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return f.serve(caller, r)
}

func (f *fixture) serve(caller user.Info, r *http.Request) *httptest.ResponseRecorder {
	if caller != nil {
		r = r.WithContext(request.WithUser(r.Context(), caller))
	}
	w := httptest.NewRecorder()
	f.ReviewHandler().ServeHTTP(w, r)
	return w
}

// question returns an AdmissionReview with the request's fields.
func question(fields string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{` + fields + `}}`
}

const (
	// about is the minimum of a question about a Deployment.
	about = `"resource":{"group":"apps","version":"v1","resource":"deployments"},"kind":{"group":"apps","version":"v1","kind":"Deployment"}`
	one   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":1}}`
	two   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":2}}`
	scale = about + `,"operation":"UPDATE","oldObject":` + one + `,"object":` + two
)

// expect compares a response with a status and a part of its text.
func expect(t *testing.T, w *httptest.ResponseRecorder, code int, part string) {
	t.Helper()
	if w.Code != code || !strings.Contains(w.Body.String(), part) {
		t.Errorf("got %d %.500s, want %d with %q", w.Code, w.Body, code, part)
	}
	wanted := "text/plain; charset=utf-8"
	if code == http.StatusOK {
		wanted = "application/json"
	}
	if got := w.Header().Get("Content-Type"); got != wanted {
		t.Errorf("content type %q, want %q", got, wanted)
	}
}

// undecided fails the test if the authorizer was asked.
func (f *fixture) undecided(t *testing.T) {
	t.Helper()
	if len(f.grants.asked) > 0 {
		t.Errorf("the authorizer was asked: %+v", f.grants.asked)
	}
}
