package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/fieldperm"
)

func authorizeReviewer(h *holder) *AuthorizeReviewer {
	return &AuthorizeReviewer{
		Allowed: func(group, resource, subresource string) bool {
			return group == "apps" && resource == "deployments" && (subresource == "" || subresource == "scale")
		},
		Authorizer: func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer { return h },
		Enforced:   func(context.Context, *authorizationv1.ResourceAttributes) error { return nil },
	}
}

func asking(verb, group, resource, subresource string) *authorizationv1.SubjectAccessReviewSpec {
	return &authorizationv1.SubjectAccessReviewSpec{User: "alice", ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: "shop", Name: "web",
	}}
}

func TestA1_A2_A3_AllowedOnlyForWritesOfListedResourcesByHoldersOfTheMarker(t *testing.T) {
	for name, c := range map[string]struct {
		spec  *authorizationv1.SubjectAccessReviewSpec
		holds []string
		want  bool
		asked int
	}{
		"create":               {asking("create", "apps", "deployments", ""), []string{"granular"}, true, 1},
		"update":               {asking("update", "apps", "deployments", ""), []string{"granular", "get"}, true, 2},
		"patch":                {asking("patch", "apps", "deployments", ""), []string{"granular", "get"}, true, 2},
		"subresource":          {asking("update", "apps", "deployments", "scale"), []string{"granular", "get"}, true, 2},
		"no marker":            {asking("update", "apps", "deployments", ""), []string{"granular:*", "granular:scale", "update"}, false, 1},
		"get":                  {asking("get", "apps", "deployments", ""), []string{"granular"}, false, 0},
		"delete":               {asking("delete", "apps", "deployments", ""), []string{"granular"}, false, 0},
		"deletecollection":     {asking("deletecollection", "apps", "deployments", ""), []string{"granular"}, false, 0},
		"bind":                 {asking("bind", "apps", "deployments", ""), []string{"granular"}, false, 0},
		"any verb":             {asking("*", "apps", "deployments", ""), []string{"granular"}, false, 0},
		"the marker itself":    {asking("granular", "apps", "deployments", ""), []string{"granular"}, false, 0},
		"a granular verb":      {asking("granular:scale", "apps", "deployments", ""), []string{"granular"}, false, 0},
		"upper case":           {asking("UPDATE", "apps", "deployments", ""), []string{"granular"}, false, 0},
		"other resource":       {asking("update", "apps", "daemonsets", ""), []string{"granular"}, false, 0},
		"other subresource":    {asking("update", "apps", "deployments", "exec"), []string{"granular"}, false, 0},
		"any resource":         {asking("update", "apps", "*", ""), []string{"granular"}, false, 0},
		"non-resource request": {&authorizationv1.SubjectAccessReviewSpec{User: "alice", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/x", Verb: "update"}}, []string{"granular"}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := holding(c.holds...)
			status, err := authorizeReviewer(h).Review(t.Context(), c.spec)
			if err != nil || status.Allowed != c.want || status.Denied || len(h.asked) != c.asked {
				t.Errorf("got %+v, %v, asked %q", status, err, h.asked)
			}
			if status.Allowed && !strings.HasPrefix(status.Reason, "granular:") {
				t.Errorf("A3: reason %q", status.Reason)
			}
			if c.asked > 0 && h.asked[0] != "granular false" {
				t.Errorf("asked %q", h.asked)
			}
		})
	}
}

func TestA4_NoOpinionOnFieldpermsOwnGenericChecks(t *testing.T) {
	for _, key := range []string{"fieldperm.dev/generic-only", "Fieldperm.dev/Generic-Only", "FIELDPERM.DEV/GENERIC-ONLY"} {
		spec := asking("update", "apps", "deployments", "")
		spec.Extra = map[string]authorizationv1.ExtraValue{"other": {"x"}, key: {}}
		h := holding("granular")
		if status, err := authorizeReviewer(h).Review(t.Context(), spec); err != nil || status.Allowed || status.Denied || len(h.asked) > 0 {
			t.Errorf("%s: %+v, %v", key, status, err)
		}
	}
	spec := asking("update", "apps", "deployments", "")
	spec.Extra = map[string]authorizationv1.ExtraValue{"fieldperm.dev/generic-only-not": {"true"}}
	if status, _ := authorizeReviewer(holding("granular", "get")).Review(t.Context(), spec); !status.Allowed {
		t.Error("another key counts as the key")
	}
}

func TestP4_AuthorizeNeverAllowsOnError(t *testing.T) {
	status, err := authorizeReviewer(&holder{holds: []string{"granular"}, fails: map[string]error{"granular": errors.New("boom")}}).Review(t.Context(), asking("update", "apps", "deployments", ""))
	if err == nil || Code(err) != 500 || status.Allowed || status.Denied {
		t.Errorf("got %+v, %v", status, err)
	}
	for name, r := range map[string]*AuthorizeReviewer{"zero": {}, "no chain": {Allowed: authorizeReviewer(nil).Allowed}} {
		if status, _ := r.Review(t.Context(), asking("update", "apps", "deployments", "")); status.Allowed {
			t.Errorf("%s allows", name)
		}
	}
}

func TestBadInput_ReviewThatMakesNoSense(t *testing.T) {
	both := asking("update", "apps", "deployments", "")
	both.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: "/"}
	noUser := asking("update", "apps", "deployments", "")
	noUser.User = ""
	for name, spec := range map[string]*authorizationv1.SubjectAccessReviewSpec{"neither": {User: "alice"}, "both": both, "noUser": noUser} {
		if status, err := authorizeReviewer(holding("granular")).Review(t.Context(), spec); Code(err) != 400 || status.Allowed {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}
}

func TestA5_GranularUsersAreDeniedWithoutProof(t *testing.T) {
	for name, enforced := range map[string]func(context.Context, *authorizationv1.ResourceAttributes) error{
		"no proof":   nil,
		"not proven": func(context.Context, *authorizationv1.ResourceAttributes) error { return errors.New("no proof") },
	} {
		r := authorizeReviewer(holding("granular", "get"))
		r.Enforced = enforced
		status, err := r.Review(t.Context(), asking("update", "apps", "deployments", ""))
		if err != nil || status.Allowed || status.Denied || !strings.HasPrefix(status.Reason, "granular: ") {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}
	// A user that is not allowed anyway needs no proof.
	r := authorizeReviewer(holding("granular:scale"))
	r.Enforced = func(context.Context, *authorizationv1.ResourceAttributes) error {
		t.Error("asked")
		return nil
	}
	if status, err := r.Review(t.Context(), asking("update", "apps", "deployments", "")); err != nil || status.Allowed || status.Reason != "" {
		t.Errorf("%+v, %v", status, err)
	}
}

// unknown is an authorizer with a part that failed and whose policy is NoOpinion.
type unknown struct{ err error }

func (u unknown) Authorize(context.Context, string, bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion, Failure: u.err}, nil
}

func TestP4_AFailedMarkerCheckIsAnError(t *testing.T) {
	r := authorizeReviewer(holding())
	broken := errors.New("authorizer is down")
	r.Authorizer = func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer { return unknown{broken} }
	status, err := r.Review(t.Context(), asking("update", "apps", "deployments", ""))
	if !errors.Is(err, broken) || status.Allowed || Code(err) != 500 {
		t.Errorf("%+v, %v", status, err)
	}
}

func TestP4_C4_AFailedDeleteCheckIsAnError(t *testing.T) {
	broken := errors.New("authorizer is down")
	r := &Reviewer{Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return unknown{broken} }}
	result, err := r.Review(t.Context(), Granular, &admissionv1.AdmissionRequest{
		Operation: admissionv1.Delete, Resource: metav1.GroupVersionResource{Resource: "pods", Version: "v1"},
		UserInfo: authenticationv1.UserInfo{Username: "alice"},
	})
	if !errors.Is(err, broken) || result != nil || Code(err) != 500 {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestP4_AFailedWebhookIsAnErrorOfTheAuthorizationPhase: it might have allowed the request. A holder of the marker needs no Allow of it.
func TestP4_AFailedWebhookIsAnErrorOfTheAuthorizationPhase(t *testing.T) {
	down := errors.New("down")
	for _, decision := range []authorizer.ConditionsAwareDecision{authorizer.ConditionsAwareDecisionDeny("", down), authorizer.ConditionsAwareDecisionNoOpinion("", down)} {
		for _, verb := range []string{"update", "delete"} {
			r := authorizeReviewer(holding())
			r.Policies = func() (authorizer.Authorizer, error) { return policies{verb: decision}, nil }
			if status, err := r.Review(t.Context(), asking(verb, "apps", "deployments", "")); !errors.Is(err, down) || status.Allowed {
				t.Errorf("%s, %s: %+v, %v", decision, verb, status, err)
			}
			if got, err := r.Decide(t.Context(), asking(verb, "apps", "deployments", "")); !errors.Is(err, down) || got.IsAllow() {
				t.Errorf("%s, %s: %s, %v", decision, verb, got, err)
			}
		}
	}
	r := authorizeReviewer(holding("granular", "get"))
	r.Policies = func() (authorizer.Authorizer, error) {
		return policies{"update": authorizer.ConditionsAwareDecisionNoOpinion("", down)}, nil
	}
	if status, err := r.Review(t.Context(), asking("update", "apps", "deployments", "")); err != nil || !status.Allowed {
		t.Errorf("a holder of the marker: %+v, %v", status, err)
	}
}

// TestA7_WhoMayNotReadIsNotLetInToWrite: neither the marker nor a condition lets a user in to update or patch without get. It is asked for last,
// and an error is no denial.
func TestA7_WhoMayNotReadIsNotLetInToWrite(t *testing.T) {
	const reason = `granular: the user lacks "get" on deployments.apps "web", and kube-apiserver reads the object for the user before admission: grant get`
	mayAllow := authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, []authorizer.Condition{authorizer.GenericCondition{ID: "x", Type: "example.com/x", Condition: "x"}})
	mayDeny := authorizer.ConditionsAwareDecisionConditionsMap([]authorizer.Condition{authorizer.GenericCondition{ID: "x", Type: "example.com/x", Condition: "x"}}, nil, nil)
	allow := authorizer.ConditionsAwareDecisionAllow("granted", nil)
	down := errors.New("down")
	for name, c := range map[string]struct {
		verb, subresource string
		policies          policies
		holds             []string
		fails             map[string]error
		want              bool
		reason            string
		err               error
		asked             int
	}{
		"the marker":                    {verb: "update", holds: []string{"granular"}, reason: reason, asked: 2},
		"the marker, patch":             {verb: "patch", holds: []string{"granular"}, reason: reason, asked: 2},
		"the marker, with get":          {verb: "patch", holds: []string{"granular", "get"}, want: true, asked: 2},
		"no marker":                     {verb: "patch", holds: []string{"granular:*"}, asked: 1},
		"a creation":                    {verb: "create", holds: []string{"granular"}, want: true, asked: 1},
		"a subresource":                 {verb: "patch", subresource: "scale", holds: []string{"granular"}, reason: `lacks "get" on deployments.apps/scale "web"`, asked: 2},
		"list and watch":                {verb: "patch", holds: []string{"granular", "list", "watch"}, reason: reason, asked: 2},
		"a condition":                   {verb: "patch", policies: policies{"patch": mayAllow}, reason: reason, asked: 1},
		"a condition, with get":         {verb: "patch", policies: policies{"patch": mayAllow}, holds: []string{"get"}, want: true, asked: 1},
		"a condition, create":           {verb: "create", policies: policies{"create": mayAllow}, want: true},
		"a condition, delete":           {verb: "delete", policies: policies{"delete": mayAllow}, want: true},
		"a condition of the marker":     {verb: "patch", policies: policies{"granular": mayAllow}, reason: reason, asked: 1},
		"no object changes the answer":  {verb: "patch", policies: policies{"patch": allow}, want: true},
		"get of a webhook":              {verb: "patch", policies: policies{"get": allow}, holds: []string{"granular"}, want: true, asked: 1},
		"get on a condition":            {verb: "patch", policies: policies{"get": mayAllow}, holds: []string{"granular"}, reason: reason, asked: 2},
		"get that a condition may deny": {verb: "patch", policies: policies{"get": mayDeny}, holds: []string{"granular", "get"}, reason: reason, asked: 1},
		"get fails":                     {verb: "patch", holds: []string{"granular"}, fails: map[string]error{"get": down}, err: down, asked: 2},
		"get fails, on a condition":     {verb: "patch", policies: policies{"patch": mayAllow}, fails: map[string]error{"get": down}, err: down, asked: 1},
		"a webhook failed for get":      {verb: "patch", policies: policies{"get": authorizer.ConditionsAwareDecisionNoOpinion("", down)}, holds: []string{"granular"}, err: down, asked: 2},
		"a webhook failed for patch":    {verb: "patch", policies: policies{"patch": authorizer.ConditionsAwareDecisionNoOpinion("", down)}, holds: []string{"granular"}, reason: reason, err: down, asked: 2},
	} {
		h := holding(c.holds...)
		h.fails = c.fails
		r := authorizeReviewer(h)
		r.Policies = func() (authorizer.Authorizer, error) { return c.policies, nil }
		status, err := r.Review(t.Context(), asking(c.verb, "apps", "deployments", c.subresource))
		if status.Allowed != c.want || status.Denied || !errors.Is(err, c.err) || c.reason == "" != (c.want || status.Reason == "") || !strings.Contains(status.Reason, c.reason) || len(h.asked) != c.asked {
			t.Errorf("%s: %+v, %v, asked %q", name, status, err, h.asked)
		}
		if decision, err := r.Decide(t.Context(), asking(c.verb, "apps", "deployments", c.subresource)); decision.PossibleDecisions().Has(authorizer.DecisionAllow) != c.want || !errors.Is(err, c.err) || c.err == nil && !strings.Contains(decision.Reason(), c.reason) {
			t.Errorf("%s, a caller with conditions: %s, %v", name, decision, err)
		}
	}
	unnamed := asking("update", "", "pods", "")
	unnamed.ResourceAttributes.Name = ""
	if reason, _ := unreadable(unnamed.ResourceAttributes, func() (fieldperm.AuthorizerDecision, error) { return fieldperm.AuthorizerDecision{}, nil }); !strings.Contains(reason, `on pods, and`) {
		t.Errorf("no name: %q", reason)
	}
}
