package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// post sends a body to a handler.
func postTo(t *testing.T, h http.Handler, body []byte) (int, []byte) {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w.Code, w.Body.Bytes()
}

// served asks both endpoints of a dialect, as an API server that handles conditions.
func served(t *testing.T, d wire.Dialect, first *AuthorizeReviewer, writes *Reviewer, spec *authorizationv1.SubjectAccessReviewSpec, req *admissionv1.AdmissionRequest) (one, two authorizer.ConditionsAwareDecision) {
	t.Helper()
	h := Handlers{MaxBytes: 1 << 20}
	body, err := d.Ask(spec)
	if err != nil {
		t.Fatal(err)
	}
	code, answer := postTo(t, h.DialectHandler(first, d), body)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", d, code, answer)
	}
	if one, err = d.ReadStatus(answer); err != nil {
		t.Fatalf("%s: %v: %s", d, err, answer)
	}
	if one.IsUnconditional() {
		return one, one
	}
	if body, err = d.AskConditions(wire.ConditionsRequest{Decision: one, Admission: req}); err != nil {
		t.Fatal(err)
	}
	if code, answer = postTo(t, h.ConditionsHandler(writes, d), body); code != http.StatusOK {
		t.Fatalf("%s: %d %s", d, code, answer)
	}
	if two, err = d.ReadConditionsAnswer(answer, req.UID); err != nil {
		t.Fatalf("%s: %v: %s", d, err, answer)
	}
	return one, two
}

// TestK3_ConditionsAreServedInEachDialect: a caller that handles conditions gets the decision of an authorizer that knows the objects, without a
// proof of enforcement.
func TestK3_ConditionsAreServedInEachDialect(t *testing.T) {
	of := func(id string) []authorizer.Condition {
		return []authorizer.Condition{authorizer.GenericCondition{ID: id, Type: "example.com/type", Condition: "true", Description: "of " + id}}
	}
	allow, deny := authorizer.ConditionsAwareDecisionAllow("policy allows", nil), authorizer.ConditionsAwareDecisionDeny("policy denies", nil)
	mayAllow, mayDeny := authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, of("a")), authorizer.ConditionsAwareDecisionConditionsMap(of("d"), nil, nil)
	met := fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: "met", By: "policy"}
	denied := fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: "because", By: "policy"}
	image := update(`{"paused":true}`, `{"paused":false}`)
	for name, c := range map[string]struct {
		verb        string
		policies    policies
		conditional onObjects
		holds       []string
		req         *admissionv1.AdmissionRequest
		first, then string
	}{
		"nothing":                         {"update", nil, nil, nil, scaling(), "NoOpinion", "NoOpinion"},
		"generic only":                    {"update", nil, nil, []string{"update"}, scaling(), "NoOpinion", "NoOpinion"},
		"granular":                        {"update", nil, nil, []string{"granular", "granular:scale"}, scaling(), "conditions", "Allow"},
		"granular, another field":         {"update", nil, nil, []string{"granular", "granular:scale"}, image, "conditions", "NoOpinion"},
		"generic and the marker":          {"update", nil, nil, []string{"update", "granular"}, scaling(), "conditions", "NoOpinion"},
		"generic, and not denied":         {"update", policies{"update": mayDeny}, nil, []string{"update"}, scaling(), "conditions", "NoOpinion"},
		"only a granular verb denied":     {"update", policies{"update": mayDeny}, onObjects{"granular:scale": denied}, []string{"update", "granular"}, scaling(), "conditions", "NoOpinion"},
		"allowed since, could only deny":  {"update", policies{"update": mayDeny}, onObjects{"update": met}, nil, scaling(), "conditions", "NoOpinion"},
		"granular deletes nothing":        {"delete", nil, nil, []string{"granular", "granular:*"}, scaling(), "NoOpinion", "NoOpinion"},
		"granular reads nothing":          {"get", nil, nil, []string{"granular"}, scaling(), "NoOpinion", "NoOpinion"},
		"policy allows":                   {"update", policies{"update": allow}, nil, nil, scaling(), "Allow", "Allow"},
		"policy denies":                   {"update", policies{"update": deny}, nil, []string{"granular", "granular:*"}, scaling(), "Deny", "Deny"},
		"policy allows the object":        {"update", policies{"update": mayAllow}, onObjects{"update": met}, nil, scaling(), "conditions", "Allow"},
		"policy does not allow it":        {"update", policies{"update": mayAllow}, nil, nil, scaling(), "conditions", "NoOpinion"},
		"policy denies the object":        {"update", policies{"update": mayDeny}, onObjects{"update": denied}, []string{"granular", "granular:*"}, scaling(), "conditions", "Deny"},
		"policy denies it to all":         {"update", policies{"update": mayDeny}, onObjects{"update": denied}, []string{"update"}, scaling(), "conditions", "Deny"},
		"policy does not deny it":         {"update", policies{"update": mayDeny}, nil, []string{"granular", "granular:scale"}, scaling(), "conditions", "Allow"},
		"policy has no opinion on others": {"update", policies{"patch": mayAllow}, nil, nil, scaling(), "NoOpinion", "NoOpinion"},
	} {
		for _, d := range wire.All() {
			first := authorizeReviewer(holding(append(c.holds, "get")...))
			first.Enforced = nil
			first.Policies = func() (authorizer.Authorizer, error) { return c.policies, nil }
			writes := reviewer(schematest.Schema(t), holding(c.holds...))
			writes.Conditional = func(*Write, fieldperm.Authorizer) (Conditions, error) { return c.conditional, nil }
			c.req.UID = "1"
			one, two := served(t, d, first, writes, asking(c.verb, "apps", "deployments", ""), c.req)
			if got := kindOf(one); got != c.first {
				t.Errorf("%s: %s: the first phase is %s, want %s", name, d, one, c.first)
			}
			if got := kindOf(two); got != c.then {
				t.Errorf("%s: %s: admission is %s, want %s", name, d, two, c.then)
			}
			if two.IsAllow() && !one.IsAllow() && !strings.HasPrefix(two.Reason(), "granular:") && d != wire.None {
				t.Errorf("%s: %s: reason %q looks like the generic permission", name, d, two.Reason())
			}
		}
	}
}

// forAll has one decision for all requests.
type forAll struct {
	policies
	decision authorizer.ConditionsAwareDecision
}

func (f forAll) ConditionsAwareAuthorize(context.Context, authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return f.decision
}

// TestW4_AServedDenyReachesNoFloor: nor members of system:masters, as the match conditions of the webhook for barriers say.
func TestW4_AServedDenyReachesNoFloor(t *testing.T) {
	deny := authorizer.ConditionsAwareDecisionDeny("policy denies", nil)
	mayDeny := authorizer.ConditionsAwareDecisionConditionsMap([]authorizer.Condition{authorizer.GenericCondition{ID: "d", Type: "example.com/type", Condition: "true"}}, nil, nil)
	spec := func(user, group, verb, apiGroup, resource, subresource, name string) *authorizationv1.SubjectAccessReviewSpec {
		out := asking(verb, apiGroup, resource, subresource)
		out.User, out.Groups, out.ResourceAttributes.Name = user, []string{group}, name
		return out
	}
	for name, c := range map[string]struct {
		spec *authorizationv1.SubjectAccessReviewSpec
		deny bool
	}{
		"a heartbeat":          {spec("kubelet", "", "update", "coordination.k8s.io", "leases", "", "a"), false},
		"the status of a node": {spec("system:node:a", "system:nodes", "patch", "", "nodes", "status", "a"), false},
		"of another node":      {spec("system:node:a", "system:nodes", "patch", "", "nodes", "status", "b"), true},
		"a review":             {spec("fieldperm", "", "create", "authorization.k8s.io", "subjectaccessreviews", "", ""), false},
		"system:masters":       {spec("root", "system:masters", "update", "apps", "deployments", "", "web"), false},
		"others":               {spec("alice", "admins", "update", "apps", "deployments", "", "web"), true},
	} {
		for _, decision := range []authorizer.ConditionsAwareDecision{deny, mayDeny} {
			first := authorizeReviewer(holding())
			first.Policies = func() (authorizer.Authorizer, error) { return forAll{policies{}, decision}, nil }
			if got, err := first.Decide(t.Context(), c.spec); err != nil || got.PossibleDecisions().Has(authorizer.DecisionDeny) != c.deny {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		}
	}
	writes := reviewer(schematest.Schema(t), holding())
	writes.Conditional = func(*Write, fieldperm.Authorizer) (Conditions, error) {
		return onObjects{"update": {Outcome: fieldperm.Deny, Reason: "because", By: "policy"}}, nil
	}
	for group, want := range map[string]bool{"system:masters": false, "others": true} {
		req := scaling()
		req.UserInfo.Groups = []string{group}
		if got, err := writes.Evaluate(t.Context(), authorizer.ConditionsAwareDecisionConditionsMap([]authorizer.Condition{own(DenyCondition, "")}, nil, nil), req); err != nil || got.IsDeny() != want {
			t.Errorf("%s: %s, %v", group, got, err)
		}
	}
}

// TestD1_AServedReviewCountsForTheShareOfItsUser: as a review of a webhook does.
func TestD1_AServedReviewCountsForTheShareOfItsUser(t *testing.T) {
	req := scaling()
	req.UID = "1"
	body, err := wire.ConditionSetChain.AskConditions(wire.ConditionsRequest{
		Decision: authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, []authorizer.Condition{own(AllowCondition, "")}), Admission: req,
	})
	if err != nil {
		t.Fatal(err)
	}
	for has, want := range map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests} {
		var of []string
		h := Handlers{MaxBytes: 1 << 20, Share: func(_ context.Context, user string, probe bool) bool {
			of = append(of, fmt.Sprint(user, probe))
			return has
		}}
		code, answer := postTo(t, h.ConditionsHandler(reviewer(schematest.Schema(t), holding("granular", "granular:*")), wire.ConditionSetChain), body)
		if code != want || len(of) != 1 || of[0] != "alicefalse" {
			t.Errorf("%t: %d %s, asked %q", has, code, answer, of)
		}
	}
}

// kindOf names a decision.
func kindOf(d authorizer.ConditionsAwareDecision) string {
	switch {
	case d.IsAllow():
		return "Allow"
	case d.IsDeny():
		return "Deny"
	case d.IsNoOpinion():
		return "NoOpinion"
	}
	return "conditions"
}

// TestK3_ACallerWithoutTheDialectSeesNoAllow: one that asks in another way, or in none.
func TestK3_ACallerWithoutTheDialectSeesNoAllow(t *testing.T) {
	for _, d := range wire.All() {
		for _, asked := range append(wire.All(), wire.None) {
			if asked == d {
				continue
			}
			body, err := asked.Ask(asking("update", "apps", "deployments", ""))
			if err != nil {
				t.Fatal(err)
			}
			first := authorizeReviewer(holding("granular", "granular:*", "get"))
			code, answer := postTo(t, Handlers{MaxBytes: 1 << 20}.DialectHandler(first, d), body)
			if code != http.StatusOK || strings.Contains(string(answer), `"allowed":true`) {
				t.Errorf("%s asked as %q: %d %s", d, string(asked), code, answer)
			}
			got, err := asked.ReadStatus(answer)
			if mode := d != wire.ConditionalDecision && asked != wire.ConditionalDecision && asked != wire.None; !mode && (err != nil || !got.IsNoOpinion()) {
				t.Errorf("%s asked as %q: %s, %v", d, string(asked), got, err)
			}
		}
	}
}

// TestK2_OnlyOwnConditionsAreEvaluated: a decision that fieldperm did not return is refused, also if it has more than fieldperm's conditions.
func TestK2_OnlyOwnConditionsAreEvaluated(t *testing.T) {
	condition := func(id, kind, text string) []authorizer.Condition {
		return []authorizer.Condition{authorizer.GenericCondition{ID: id, Type: kind, Condition: text}}
	}
	good := authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, condition(AllowCondition, ownConditions, ownConditions))
	union := func(of ...authorizer.ConditionsAwareDecision) authorizer.ConditionsAwareDecision {
		var out authorizer.ConditionsAwareDecisionUnion
		for i, d := range of {
			out.Add(fmt.Sprintf("a%d", i), d)
		}
		return out.ToDecision()
	}
	foreign := authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, condition("other", ownConditions, ownConditions))
	writes := reviewer(schematest.Schema(t), holding("granular", "granular:scale"))
	for name, c := range map[string]struct {
		decision authorizer.ConditionsAwareDecision
		want     bool
	}{
		"own":             {good, true},
		"own in a union":  {union(good), true},
		"another ID":      {foreign, false},
		"another type":    {authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, condition(AllowCondition, "other", ownConditions)), false},
		"another text":    {authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, condition(AllowCondition, ownConditions, "true")), false},
		"another effect":  {authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, condition(DenyCondition, ownConditions, ownConditions)), false},
		"one more":        {authorizer.ConditionsAwareDecisionConditionsMap(condition("other", ownConditions, ownConditions), nil, condition(AllowCondition, ownConditions, ownConditions)), false},
		"union of two":    {union(good, foreign), false},
		"union of others": {union(foreign), false},
		"Allow":           {authorizer.ConditionsAwareDecisionAllow("", nil), false},
		"NoOpinion":       {authorizer.ConditionsAwareDecisionNoOpinion("", nil), false},
		"zero":            {authorizer.ConditionsAwareDecision{}, false},
	} {
		got, err := writes.Evaluate(t.Context(), c.decision, scaling())
		if got.IsAllow() != c.want || (err == nil) != c.want || err != nil && Code(err) != http.StatusBadRequest {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		// A refusal shows that the conditions were read.
		if c.decision.IsConditionsMap() && err != nil && !strings.Contains(err.Error(), listed(c.decision, authorizer.Condition.GetID)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestP4_ServedErrorsAreNoDecisions: nor is a body that is no review.
func TestP4_ServedErrorsAreNoDecisions(t *testing.T) {
	d := wire.ConditionSetChain
	h := Handlers{MaxBytes: 1 << 20}
	body, err := d.Ask(asking("update", "apps", "deployments", ""))
	if err != nil {
		t.Fatal(err)
	}
	unread := authorizeReviewer(holding("granular"))
	unread.Policies = func() (authorizer.Authorizer, error) { return nil, errors.New("not read") }
	failing := authorizeReviewer(holding())
	failing.Authorizer = func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer { return broken{} }
	for name, c := range map[string]struct {
		reviewer *AuthorizeReviewer
		body     string
		code     int
	}{
		"policies that are not read": {unread, string(body), http.StatusInternalServerError},
		"a chain that fails":         {failing, string(body), http.StatusInternalServerError},
		"no review":                  {failing, `{}`, http.StatusBadRequest},
		"no user":                    {failing, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"resourceAttributes":{"verb":"update"}}}`, http.StatusBadRequest},
		"another version":            {failing, strings.Replace(string(body), "k8s.io/v1", "k8s.io/v1beta1", 1), http.StatusBadRequest},
		"a key twice":                {failing, strings.Replace(string(body), `"spec":`, `"spec":null,"spec":`, 1), http.StatusBadRequest},
	} {
		if code, answer := postTo(t, h.DialectHandler(c.reviewer, d), []byte(c.body)); code != c.code {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
	for name, body := range map[string]string{"nothing": "", "no review": `{}`, "a review of access": string(body)} {
		if code, answer := postTo(t, h.ConditionsHandler(reviewer(schematest.Schema(t), holding("update")), d), []byte(body)); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
}

// broken is an authorizer that cannot be asked.
type broken struct{}

func (broken) Authorize(context.Context, string, bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{}, errors.New("down")
}
