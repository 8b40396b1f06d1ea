package authz

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/test/fakeapi"
)

const (
	mayBeRed  = `{"allowed":false,"conditionSetChain":[{"authorizerName":"x","conditionsType":"example.com/x","conditions":[{"id":"red","effect":"Allow","condition":"red"}]}]}`
	mayBeBlue = `{"allowed":false,"conditionSetChain":[{"authorizerName":"x","conditionsType":"example.com/x","conditions":[{"id":"blue","effect":"Deny","condition":"blue"}]}]}`
	allowed   = `{"allowed":true}`
	denied    = `{"allowed":false,"denied":true,"reason":"no"}`
	noOpinion = `{"allowed":false}`
)

// statuses is a webhook of the merged text. Its answers are those of a function, "" for an error. Its conditions are texts of the object.
type statuses struct {
	*fakeapi.Server
	status func(of *authorizationv1.ResourceAttributes) string
	mu     sync.Mutex
	asked  []string
}

func newStatuses(t *testing.T, status func(of *authorizationv1.ResourceAttributes) string) *statuses {
	t.Helper()
	s := &statuses{status: status}
	s.Server = fakeapi.Serve(t, s)
	return s
}

// always returns a webhook with one answer.
func always(t *testing.T, status string) *statuses {
	t.Helper()
	return newStatuses(t, func(*authorizationv1.ResourceAttributes) string { return status })
}

func (s *statuses) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/conditions" {
		red, blue := strings.Contains(string(body), `"team":"red"`), strings.Contains(string(body), `"team":"blue"`)
		fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview","response":{"allowed":%t,"denied":%t}}`,
			red && strings.Contains(string(body), `"id":"red"`), blue && strings.Contains(string(body), `"id":"blue"`))
		return
	}
	var in authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	of := in.Spec.ResourceAttributes
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%s %q/%q", of.Verb, of.Namespace, of.Name))
	s.mu.Unlock()
	status := s.status(of)
	if status == "" {
		http.Error(w, "away", http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":%s}`, status)
}

// entry is the webhook in a configuration.
func (s *statuses) entry(p place, name, policy string) hook {
	return p.conditional(name, s.Server, policy)
}

// creation is a CREATE by alice. applied says that a server-side apply has made the object.
func creation(resource, name, team string, applied bool) *admissionv1.AdmissionRequest {
	req := request()
	req.UID, req.Operation, req.Name = "1", admissionv1.Create, name
	if resource == "namespaces" {
		req.Resource.Group, req.Namespace = "", name
	}
	req.Resource.Resource = resource
	manager := `{"manager":"m","operation":"Update"}`
	if applied {
		manager = `{"manager":"m","operation":"Apply"}`
	}
	req.Object.Raw = fmt.Appendf(nil, `{"metadata":{"labels":{"team":%q},"managedFields":[%s]}}`, team, manager)
	return req
}

// TestK7_ACreateIsAskedWithItsNameAndWithout: as the API server asks for a server-side apply or a PUT, and for a POST. All other verbs are asked
// with the name.
func TestK7_ACreateIsAskedWithItsNameAndWithout(t *testing.T) {
	update, token := creation("deployments", "web", "", false), creation("serviceaccounts", "web", "", false)
	update.Operation, token.SubResource = admissionv1.Update, "token"
	for name, c := range map[string]struct {
		req  *admissionv1.AdmissionRequest
		verb string
		want string
	}{
		"create":                {creation("deployments", "web", "", false), "create", `create "shop"/"" create "shop"/"web"`},
		"create without a name": {creation("deployments", "", "", false), "create", `create "shop"/""`},
		"marker":                {creation("deployments", "web", "", false), "granular", `granular "shop"/"web"`},
		"granular verb":         {creation("deployments", "web", "", false), "granular:*", `granular:* "shop"/"web"`},
		"POST of a namespace":   {creation("namespaces", "dev", "", false), "create", `create ""/""`},
		"apply of a namespace":  {creation("namespaces", "dev", "", true), "create", `create ""/"" create "dev"/"dev"`},
		"marker of a namespace": {creation("namespaces", "dev", "", false), "granular", `granular "dev"/"dev"`},
		"subresource":           {token, "create", `create "shop"/"web"`},
		"update":                {update, "update", `update "shop"/"web"`},
	} {
		s, p := always(t, noOpinion), newPlace(t)
		p.configure(s.entry(p, "names", "Deny"), rbacEntry)
		of, ok := p.chain(Settings{newRoles: mayAll(t)}).For(c.req).(*requestAuthorizer)
		if !ok {
			t.Fatal("another authorizer")
		}
		if got, err := newOnWrite(of, c.req).Authorize(t.Context(), c.verb, false); got.Outcome != fieldperm.NoOpinion || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got := strings.Join(s.asked, " "); got != c.want {
			t.Errorf("%s: was asked %s, want %s", name, got, c.want)
		}
	}
}

// TestK7_ACreateNeedsBothDecisions: admission cannot tell a PUT from a POST. A server-side apply it can, and the API server asked for it with the name.
func TestK7_ACreateNeedsBothDecisions(t *testing.T) {
	for _, c := range []struct {
		without, with string
		team          string
		applied       bool
		want          fieldperm.Outcome
	}{
		{allowed, allowed, "", false, fieldperm.Allow},
		{mayBeRed, mayBeRed, "red", false, fieldperm.Allow},
		{mayBeRed, mayBeRed, "red", true, fieldperm.Allow},
		{mayBeRed, mayBeRed, "green", false, fieldperm.NoOpinion},
		// A POST of the name is let through by the first decision only, and an apply by the second.
		{allowed, mayBeRed, "green", false, fieldperm.NoOpinion},
		{allowed, mayBeRed, "green", true, fieldperm.NoOpinion},
		{mayBeRed, allowed, "green", false, fieldperm.NoOpinion},
		{noOpinion, mayBeRed, "red", false, fieldperm.NoOpinion},
		{noOpinion, mayBeRed, "red", true, fieldperm.Allow},
		{noOpinion, allowed, "", true, fieldperm.Allow},
		// A Deny counts in any case.
		{denied, allowed, "", false, fieldperm.Deny},
		{denied, allowed, "", true, fieldperm.Deny},
		{allowed, denied, "", false, fieldperm.Deny},
		{noOpinion, denied, "", false, fieldperm.Deny},
		{mayBeBlue, allowed, "blue", false, fieldperm.Deny},
		{mayBeRed, mayBeBlue, "blue", true, fieldperm.Deny},
	} {
		s, p := newStatuses(t, func(of *authorizationv1.ResourceAttributes) string {
			if of.Name == "" {
				return c.without
			}
			return c.with
		}), newPlace(t)
		p.configure(s.entry(p, "names", "Deny"), rbacEntry)
		req := creation("deployments", "web", c.team, c.applied)
		of, _ := p.chain(Settings{newRoles: mayAll(t)}).For(req).(*requestAuthorizer)
		if got, err := newOnWrite(of, req).Authorize(t.Context(), "create", false); got.Outcome != c.want || err != nil {
			t.Errorf("without a name %s, with it %s, team %q, applied %t: %v, %v, want %v", c.without, c.with, c.team, c.applied, got.Outcome, err, c.want)
		}
	}
}

// TestK7_APostOfANamespaceIsInNoNamespace: what a webhook allows in a namespace says nothing about who may create it.
func TestK7_APostOfANamespaceIsInNoNamespace(t *testing.T) {
	s, p := newStatuses(t, func(of *authorizationv1.ResourceAttributes) string {
		if of.Namespace == "dev" {
			return allowed
		}
		return mayBeRed
	}), newPlace(t)
	p.configure(s.entry(p, "owners", "Deny"), rbacEntry)
	c := p.chain(Settings{newRoles: mayAll(t)})
	for team, want := range map[string]fieldperm.Outcome{"red": fieldperm.Allow, "green": fieldperm.NoOpinion} {
		req := creation("namespaces", "dev", team, false)
		of, _ := c.For(req).(*requestAuthorizer)
		if got, err := newOnWrite(of, req).Authorize(t.Context(), "create", true); got.Outcome != want || err != nil {
			t.Errorf("%s: %+v, %v", team, got, err)
		}
	}
}

// TestK7_OnlyTheAPIServerRecordsAnApply: of an object that a POST creates it records the operation Update, beside what the user sends.
func TestK7_OnlyTheAPIServerRecordsAnApply(t *testing.T) {
	for text, want := range map[string]bool{
		`[{"manager":"a","operation":"Apply"}]`:                                      true,
		`[{"manager":"a","operation":"Update"}]`:                                     false,
		`[{"manager":"a","operation":"Apply"},{"manager":"b","operation":"Update"}]`: false,
		`[{"manager":"a","operation":"Apply","subresource":"status"}]`:               false,
		`[]`: false, `null`: false, `{}`: false,
	} {
		req := &admissionv1.AdmissionRequest{}
		req.Object.Raw = []byte(`{"metadata":{"managedFields":` + text + `}}`)
		if isApplied(req) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}

// TestP4_ADenyAfterAFailureIsAnError: the webhook that failed might have allowed the verb. A granular verb is not held, and another one may be.
func TestP4_ADenyAfterAFailureIsAnError(t *testing.T) {
	p := newPlace(t)
	p.configure(always(t, "").entry(p, "first", "NoOpinion"), always(t, denied).entry(p, "second", "NoOpinion"), rbacEntry)
	c := p.chain(Settings{newRoles: mayAll(t)})
	w := write(`{}`)
	conditions := Conditions(c.For(w.Request), w)
	for range 2 {
		if got, err := conditions.Authorize(t.Context(), "update", true); err == nil || !strings.Contains(err.Error(), `authorizer "first"`) || got.Outcome == fieldperm.Allow {
			t.Errorf("update: %+v, %v", got, err)
		}
		if got, err := conditions.Authorize(t.Context(), "granular:*", false); err != nil || got.Outcome != fieldperm.Deny || got.Failure == nil {
			t.Errorf("granular:*: %+v, %v", got, err)
		}
	}
	// A Deny without a failure is a denial.
	p.configure(always(t, noOpinion).entry(p, "first", "NoOpinion"), always(t, denied).entry(p, "second", "NoOpinion"), rbacEntry)
	got, err := Conditions(p.chain(Settings{newRoles: mayAll(t)}).For(w.Request), w).Authorize(t.Context(), "update", true)
	if err != nil || got.Outcome != fieldperm.Deny || got.Failure != nil || got.By != "second" || got.Reason != "no" {
		t.Errorf("no failure: %+v, %v", got, err)
	}
}

// TestK8_ADenialNamesAHandfulOfConditions: a webhook may return thousands for the verbs of one review.
func TestK8_ADenialNamesAHandfulOfConditions(t *testing.T) {
	s, p := newStatuses(t, func(of *authorizationv1.ResourceAttributes) string {
		var all []string
		for i := range 128 {
			all = append(all, fmt.Sprintf(`{"id":"%s-%d","effect":"Allow","condition":"x"}`, strings.ReplaceAll(of.Verb, ":", "_"), i))
		}
		return `{"allowed":false,"conditionSetChain":[{"authorizerName":"x","conditions":[` + strings.Join(all, ",") + `]}]}`
	}), newPlace(t)
	p.configure(s.entry(p, "many", "Deny"), rbacEntry)
	w := write(`{}`)
	conditions := Conditions(p.chain(Settings{newRoles: mayAll(t)}).For(w.Request), w)
	for _, verb := range []string{"update", "patch", "granular:scale"} {
		if got, err := conditions.Authorize(t.Context(), verb, false); err != nil || got.Outcome != fieldperm.NoOpinion {
			t.Fatalf("%s: %+v, %v", verb, got, err)
		}
	}
	unmet := conditions.Unmet([]string{"update", "patch", "create", "granular", "granular:scale"})
	if !slices.Equal(unmet, slices.CompactFunc(slices.Clone(unmet), func(a, b fieldperm.Unmet) bool { return a == b })) || len(unmet) != maxUnmet || unmet[0].Name != "update-0" {
		t.Errorf("%d conditions: %v", len(unmet), unmet)
	}
}

// TestA4_WebhooksWithConditionsDecideOnGenericVerbsToo: where no object decides, what may deny denies.
func TestA4_WebhooksWithConditionsDecideOnGenericVerbsToo(t *testing.T) {
	for name, c := range map[string]struct {
		status, policy string
		groups         []string
		roles          []string
		want           bool
		fails          bool
	}{
		"denies, RBAC allows":          {denied, "Deny", nil, []string{"alice"}, false, false},
		"may deny, RBAC allows":        {mayBeBlue, "Deny", nil, []string{"alice"}, false, false},
		"may allow, RBAC allows":       {mayBeRed, "Deny", nil, []string{"alice"}, true, false},
		"may allow":                    {mayBeRed, "Deny", nil, nil, false, false},
		"allows":                       {allowed, "Deny", nil, nil, true, false},
		"no opinion, RBAC allows":      {noOpinion, "Deny", nil, []string{"alice"}, true, false},
		"fails":                        {"", "Deny", nil, []string{"alice"}, false, true},
		"fails, passed over":           {"", "NoOpinion", nil, []string{"alice"}, true, false},
		"fails, passed over, no RBAC":  {"", "NoOpinion", nil, nil, false, true},
		"denies, but for the masters":  {denied, "Deny", []string{user.SystemPrivilegedGroup}, nil, true, false},
		"fails, and not of the master": {"", "Deny", []string{user.SystemPrivilegedGroup}, nil, true, false},
	} {
		p := newPlace(t)
		p.configure(always(t, c.status).entry(p, "first", c.policy), rbacEntry)
		spec := &authorizationv1.SubjectAccessReviewSpec{
			User: "alice", Groups: c.groups, ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"},
		}
		got, err := p.chain(Settings{newRoles: mayAll(t, c.roles...)}).Holds(t.Context(), spec, "create")
		if got.AllowsGeneric() != c.want || (err != nil || got.Failure != nil) != c.fails {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestK7_WebhooksDecideOnBarriersOfAllUsers: at the endpoint uncovered, and on no generic verb there, because the user may be one whom fieldperm
// does not let through.
func TestK7_WebhooksDecideOnBarriersOfAllUsers(t *testing.T) {
	for _, endpoint := range []admission.Endpoint{admission.Granular, admission.Uncovered} {
		s, p := always(t, denied), newPlace(t)
		p.configure(s.entry(p, "denier", "Deny"), rbacEntry)
		w := write(`{}`)
		w.Endpoint = endpoint
		conditions := Conditions(p.chain(Settings{newRoles: mayAll(t)}).For(w.Request), w)
		generic, err := conditions.Authorize(t.Context(), "update", true)
		if want := endpoint == admission.Granular; err != nil || (generic.Outcome == fieldperm.Deny) != want {
			t.Errorf("%s: update: %+v, %v", endpoint, generic, err)
		}
		if got, err := conditions.Authorize(t.Context(), "granular:example.com/danger", false); err != nil || got.Outcome != fieldperm.Deny {
			t.Errorf("%s: the verb of a barrier: %+v, %v", endpoint, got, err)
		}
	}
}
