package authz

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/test/fakeapi"
)

// labels is an authorizer that speaks the merged text of KEP-5681: it allows objects with a text in them.
type labels struct {
	*fakeapi.Server
	mu sync.Mutex
	// text is the condition of now, "" to allow at once.
	text string
	// fails makes an endpoint answer with an error.
	fails map[string]bool
	seen  []string
}

func newLabels(t *testing.T, text string) *labels {
	t.Helper()
	l := &labels{text: text, fails: map[string]bool{}}
	l.Server = fakeapi.Serve(t, l)
	return l
}

func (l *labels) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// asked returns what was asked since the last call, without health checks.
func (l *labels) asked() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := strings.Join(l.seen, " ")
	l.seen = nil
	return out
}

func (l *labels) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Spec    authorizationv1.SubjectAccessReviewSpec
		Request struct {
			ConditionSetChain []struct {
				Conditions []struct{ Condition string }
			}
			Object   json.RawMessage
			UserInfo authenticationv1.UserInfo
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := "evaluate"
	if in.Spec.ResourceAttributes != nil {
		asked = in.Spec.ResourceAttributes.Verb
	}
	if in.Spec.User != healthCheckUser && in.Request.UserInfo.Username != healthCheckUser {
		l.seen = append(l.seen, asked)
	}
	if l.fails[r.URL.Path] {
		http.Error(w, "away", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/conditions" && len(in.Request.ConditionSetChain) == 0:
		http.Error(w, "no conditions", http.StatusBadRequest)
	case r.URL.Path == "/conditions":
		text := in.Request.ConditionSetChain[0].Conditions[0].Condition
		fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview","response":{"allowed":%t}}`, strings.Contains(string(in.Request.Object), text))
	case asked == "patch" || in.Spec.User == healthCheckUser:
		fmt.Fprint(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false}}`)
	case l.text == "":
		fmt.Fprint(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true,"reason":"labels"}}`)
	default:
		fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false,"conditionSetChain":[
			{"authorizerName":"labels","conditionsType":"example.com/contains","conditions":[{"id":"team","effect":"Allow","condition":%q,"description":"of the team"}]}]}}`, l.text)
	}
}

// entry is the authorizer in a configuration.
func (l *labels) entry(p place, policy string, conditions ...string) hook {
	out := p.conditional("labels", l.Server, policy)
	out.conditions = conditions
	return out
}

// write is an update of a Deployment by alice.
func write(object string) *admission.Write {
	req := request()
	req.UID, req.Operation = "1", admissionv1.Update
	req.Object.Raw, req.OldObject.Raw = []byte(object), []byte(`{}`)
	return admission.NewWrite(req, nil, nil)
}

// phases returns the decision of the authorization phase on an update, and that of admission.
func phases(t *testing.T, c *Chain, object string) (authorizer.ConditionsAwareDecision, fieldperm.AuthorizerDecision, []fieldperm.Unmet, error) {
	t.Helper()
	w := write(object)
	conditions := Conditions(c.For(w.Request), w)
	if conditions == nil {
		t.Fatal("no conditions")
	}
	u := w.Request.UserInfo
	first := c.Conditional()[0].Authorizer.ConditionsAwareAuthorize(t.Context(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: map[string][]string{"example.com/scopes": {"a", "b"}}},
		Verb: "update", Namespace: "shop", Name: "web", APIGroup: "apps", APIVersion: "v1", Resource: "deployments", ResourceRequest: true,
	})
	second, err := conditions.Authorize(t.Context(), "update", true)
	return first, second, conditions.Unmet([]string{"update"}), err
}

// TestK7_AWebhookDecidesWithTheObject: its conditions are evaluated in admission, as they were in the authorization phase.
func TestK7_AWebhookDecidesWithTheObject(t *testing.T) {
	l, p := newLabels(t, "red"), newPlace(t)
	p.configure(l.entry(p, "Deny"), rbacEntry)
	c := p.chain(Settings{newRoles: mayAll(t)})
	first, second, _, err := phases(t, c, `{"team":"red"}`)
	if err != nil || first.IsUnconditional() || second.Outcome != fieldperm.Allow || second.By != "labels" {
		t.Errorf("%v, %+v, %v: want conditions that allow", first, second, err)
	}
	if got := l.asked(); got != "update evaluate" {
		t.Errorf("was asked for %q: the decision of the first phase is not used", got)
	}
	// The authorizer has other conditions by now. Those of the first phase count as long as they are held.
	l.set(func() { l.text = "blue" })
	_, second, unmet, err := phases(t, c, `{"team":"blue"}`)
	if want := (fieldperm.Unmet{Name: "team", Authorizer: "labels", Description: "of the team"}); err != nil || second.Outcome != fieldperm.NoOpinion || len(unmet) != 1 || unmet[0] != want {
		t.Errorf("%+v, %v, %v: want no opinion, with the condition", second, unmet, err)
	}
	answer, err := c.For(request()).Authorize(t.Context(), "update", true)
	if err != nil || answer.Outcome == fieldperm.Allow {
		t.Errorf("%+v, %v: the chain behind allows", answer, err)
	}
}

// TestK7_AQuestionIsAskedOncePerRequest: a verb that is asked for again has the same answer.
func TestK7_AQuestionIsAskedOncePerRequest(t *testing.T) {
	l, p := newLabels(t, "red"), newPlace(t)
	p.configure(l.entry(p, "Deny"))
	w := write(`{"team":"red"}`)
	conditions := Conditions(p.chain(Settings{}).For(w.Request), w)
	for range 2 {
		for verb, want := range map[string]fieldperm.Outcome{"update": fieldperm.Allow, "patch": fieldperm.NoOpinion} {
			if got, err := conditions.Authorize(t.Context(), verb, true); err != nil || got.Outcome != want {
				t.Errorf("%s: %+v, %v", verb, got, err)
			}
		}
	}
	if got := l.asked(); strings.Count(got, "update") != 1 || strings.Count(got, "patch") != 1 || strings.Count(got, "evaluate") != 1 {
		t.Errorf("was asked for %q", got)
	}
}

// TestK7_AnUnconditionalAllowNeedsNoObject: the conditions endpoint is not asked.
func TestK7_AnUnconditionalAllowNeedsNoObject(t *testing.T) {
	l, p := newLabels(t, ""), newPlace(t)
	p.configure(l.entry(p, "Deny"))
	first, second, _, err := phases(t, p.chain(Settings{}), `{}`)
	if err != nil || !first.IsAllow() || second.Outcome != fieldperm.Allow || l.asked() != "update" {
		t.Errorf("%v, %+v, %v", first, second, err)
	}
}

// TestK3_AWebhookThatFailsMeetsItsFailurePolicy: in both phases. An error is not a denial (P4).
func TestK3_AWebhookThatFailsMeetsItsFailurePolicy(t *testing.T) {
	for _, path := range []string{"/authorize", "/conditions"} {
		for policy, wantError := range map[string]bool{"Deny": true, "NoOpinion": false} {
			l, p := newLabels(t, "red"), newPlace(t)
			l.set(func() { l.fails[path] = true })
			p.configure(l.entry(p, policy))
			first, second, _, err := phases(t, p.chain(Settings{}), `{"team":"red"}`)
			if path == "/authorize" && (first.Error() == nil || first.IsDeny() != wantError) {
				t.Errorf("%s, %s: the first phase is %v", path, policy, first)
			}
			failed := errors.Join(err, second.Failure)
			if second.Outcome == fieldperm.Allow || (err != nil) != wantError || failed == nil || !strings.Contains(failed.Error(), `authorizer "labels"`) {
				t.Errorf("%s, %s: %+v, %v", path, policy, second, err)
			}
		}
	}
}

// TestK7_WebhooksAreAskedWhatMatches: match conditions count as for other webhooks, and system:masters precede the chain.
func TestK7_WebhooksAreAskedWhatMatches(t *testing.T) {
	for name, c := range map[string]struct {
		condition string
		groups    []string
		asked     bool
	}{
		"matches":        {"request.resourceAttributes.namespace == 'shop'", []string{"team"}, true},
		"does not match": {"request.resourceAttributes.namespace == 'other'", []string{"team"}, false},
		"masters":        {"true", []string{"team", user.SystemPrivilegedGroup}, false},
	} {
		l, p := newLabels(t, ""), newPlace(t)
		p.configure(l.entry(p, "Deny", c.condition))
		w := write(`{}`)
		w.Request.UserInfo.Groups = c.groups
		got, err := Conditions(p.chain(Settings{}).For(w.Request), w).Authorize(t.Context(), "update", true)
		if err != nil || (got.Outcome == fieldperm.Allow) != c.asked || (l.asked() != "") != c.asked {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestK4_ConvertedObjectsAreNotEvaluated: the conditions are for the version that the user sent.
func TestK4_ConvertedObjectsAreNotEvaluated(t *testing.T) {
	l, p := newLabels(t, "red"), newPlace(t)
	p.configure(l.entry(p, "Deny"))
	w := write(`{"team":"red"}`)
	w.Request.Kind = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	w.Request.RequestKind = &metav1.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}
	got, err := Conditions(p.chain(Settings{}).For(w.Request), w).Authorize(t.Context(), "update", true)
	if err == nil || got.Outcome == fieldperm.Allow || l.asked() != "update" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestK7_OneConfigurationDecidesARequest: a reload between two questions about a request has no effect on the request.
func TestK7_OneConfigurationDecidesARequest(t *testing.T) {
	l, p := newLabels(t, ""), newPlace(t)
	p.configure(l.entry(p, "Deny"), rbacEntry)
	c := p.chain(Settings{newRoles: mayAll(t)})
	w := write(`{}`)
	before := c.For(w.Request)
	p.configure(rbacEntry)
	data := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n" + rbacEntry
	if _, err := c.apply(t.Context(), []byte(data)); err != nil {
		t.Fatal(err)
	}
	if Conditions(before, w) == nil {
		t.Error("the request lost an authorizer by the reload")
	}
	if Conditions(c.For(w.Request), w) != nil || len(c.Conditional()) != 0 {
		t.Error("the authorizer is still asked")
	}
}
