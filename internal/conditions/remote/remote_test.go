package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// peer is an authorizer with one condition of each effect: the object contains the text of the condition.
type peer struct {
	dialect wire.Dialect
	// text is the condition that allows now.
	text               atomic.Pointer[string]
	reviews, evaluated atomic.Int32
	// answer replaces the answer of an endpoint.
	answer map[string]http.HandlerFunc
}

func (p *peer) conditions() authorizer.ConditionsAwareDecision {
	of := func(id, text string) []authorizer.Condition {
		return []authorizer.Condition{authorizer.GenericCondition{ID: id, Type: "example.com/contains", Condition: text}}
	}
	return authorizer.ConditionsAwareDecisionConditionsMap(of("deny", "forbidden"), nil, of("allow", *p.text.Load()))
}

// ServeHTTP implements http.Handler.
func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if answer := p.answer[r.URL.Path]; answer != nil {
		answer(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	var out []byte
	switch r.URL.Path {
	case "/authorize":
		p.reviews.Add(1)
		var status []byte
		if status, err = p.dialect.Status(p.conditions(), true); err == nil {
			out = fmt.Appendf(nil, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":%s}`, status)
		}
	case "/conditions":
		p.evaluated.Add(1)
		var asked wire.ConditionsRequest
		if asked, err = p.dialect.ReadConditionsRequest(body); err == nil {
			out, err = p.dialect.AnswerConditions(asked.Admission.UID, evaluate(asked))
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out)
}

// evaluate decides on the conditions that were sent, not on those of now.
func evaluate(asked wire.ConditionsRequest) authorizer.ConditionsAwareDecision {
	d := asked.Decision
	for d.IsUnion() {
		for _, inner := range d.UnionedDecisions() {
			d = inner
		}
	}
	object := string(asked.Admission.Object.Raw)
	for c := range d.ConditionsMap().DenyConditions() {
		if strings.Contains(object, c.GetCondition()) {
			return authorizer.ConditionsAwareDecisionDeny("it contains "+c.GetCondition(), nil)
		}
	}
	for c := range d.ConditionsMap().AllowConditions() {
		if strings.Contains(object, c.GetCondition()) {
			return authorizer.ConditionsAwareDecisionAllow("it contains "+c.GetCondition(), nil)
		}
	}
	return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
}

func serve(t *testing.T, dialect wire.Dialect, edit func(*Config, *peer)) (*Authorizer, *peer) {
	t.Helper()
	p := &peer{dialect: dialect, answer: map[string]http.HandlerFunc{}}
	text := "dev"
	p.text.Store(&text)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	c := Config{
		Name: "peer", Dialect: dialect, Timeout: 5 * time.Second, AuthorizedTTL: time.Hour, UnauthorizedTTL: time.Minute,
		Reviews: &rest.Config{Host: server.URL + "/authorize"}, Conditions: &rest.Config{Host: server.URL + "/conditions"},
	}
	if edit != nil {
		edit(&c, p)
	}
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a, p
}

// attributes are those of a request of a user.
func attributes(name string) authorizer.Attributes {
	return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: name, Groups: []string{"dev"}}, Verb: "create", Resource: "persistentvolumes", APIVersion: "v1", ResourceRequest: true}
}

// data is a request in admission.
type data struct {
	authorizer.ConditionsData
	request *admissionv1.AdmissionRequest
}

// Request returns the request.
func (d data) Request() *admissionv1.AdmissionRequest { return d.request }

func object(text string) data {
	return data{request: &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"},
		Object: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"spec":{"storageClassName":%q}}`, text)},
	}}
}

var dialects = []wire.Dialect{wire.ConditionsChain, wire.ConditionSetChain, wire.ConditionalDecision}

func TestK3_AnAuthorizerThatReturnsConditionsDecidesWithTheObject(t *testing.T) {
	for _, dialect := range dialects {
		a, _ := serve(t, dialect, nil)
		decision := a.ConditionsAwareAuthorize(context.Background(), attributes("jane"))
		if decision.IsUnconditional() {
			t.Fatalf("%s: %+v, want conditions", dialect, decision)
		}
		for text, want := range map[string]authorizer.Decision{
			"dev": authorizer.DecisionAllow, "prod": authorizer.DecisionNoOpinion, "dev forbidden": authorizer.DecisionDeny,
		} {
			if got, reason, err := a.EvaluateConditions(context.Background(), decision, object(text)); got != want || err != nil {
				t.Errorf("%s: object %q: got %v %q %v, want %v", dialect, text, got, reason, err, want)
			}
		}
		if got, _, _ := a.Authorize(context.Background(), attributes("jane")); got != authorizer.DecisionDeny {
			t.Errorf("%s: a caller without conditions gets %v, want Deny, because a condition may deny", dialect, got)
		}
	}
}

func TestK3_ConditionsAreCachedWithTheirDecision(t *testing.T) {
	time0 := testingclock.NewFakeClock(time.Unix(0, 0))
	a, p := serve(t, wire.ConditionSetChain, func(c *Config, _ *peer) { c.Clock = time0 })
	ctx := context.Background()
	decide := func(text string) authorizer.Decision {
		t.Helper()
		got, _, err := a.EvaluateConditions(ctx, a.ConditionsAwareAuthorize(ctx, attributes("jane")), object(text))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := decide("dev"); got != authorizer.DecisionAllow {
		t.Fatalf("got %v", got)
	}
	// The policies of the peer change. What was returned stays in force, whole, until it expires.
	text := "test"
	p.text.Store(&text)
	if got := decide("dev"); got != authorizer.DecisionAllow || p.reviews.Load() != 1 || p.evaluated.Load() != 2 {
		t.Errorf("cached: got %v after %d reviews and %d evaluations", got, p.reviews.Load(), p.evaluated.Load())
	}
	if a.ConditionsAwareAuthorize(ctx, attributes("john")); p.reviews.Load() != 2 {
		t.Error("another user got the decision of the first")
	}
	time0.Step(time.Minute)
	if got := decide("dev"); got != authorizer.DecisionNoOpinion || p.reviews.Load() != 3 {
		t.Errorf("expired: got %v after %d reviews", got, p.reviews.Load())
	}
}

// text answers with a fixed body.
func text(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
}

// review is an answer to a SubjectAccessReview with more fields.
func review(fields string) string {
	return `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",` + fields + `}`
}

// set is a status with n conditions, whose ids are made from their index.
func set(n int, id string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"id":%q,"effect":"Allow","condition":"x"}`, strings.ReplaceAll(id, "#", fmt.Sprint(i))))
	}
	return review(`"status":{"allowed":false,"conditionSetChain":[{"authorizerName":"a","conditionsType":"example.com/x","conditions":[` + strings.Join(all, ",") + `]}]}`)
}

func TestK3_BadPeersMeetTheFailurePolicy(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"hangs":            hang,
		"redirects":        redirect,
		"is broken":        text(http.StatusInternalServerError, ``),
		"forbids":          text(http.StatusForbidden, review(`"status":{"allowed":true}`)),
		"is no JSON":       text(http.StatusOK, `allowed`),
		"has no status":    text(http.StatusOK, review(`"spec":{}`)),
		"allows, denies":   text(http.StatusOK, review(`"status":{"allowed":true,"denied":true}`)),
		"allows twice":     text(http.StatusOK, review(`"status":{"allowed":false,"allowed":true}`)),
		"other dialect":    text(http.StatusOK, review(`"status":{"allowed":false,"conditionalDecision":{"type":"Allow","allow":{}}}`)),
		"other user":       text(http.StatusOK, review(`"spec":{"user":"john","groups":["dev"]},"status":{"allowed":true}`)),
		"other extra":      text(http.StatusOK, review(`"spec":{"user":"jane","groups":["dev"],"extra":{"scopes":["admin"]},"resourceAttributes":{"verb":"create","version":"v1","resource":"persistentvolumes"}},"status":{"allowed":true}`)),
		"other kind":       text(http.StatusOK, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"allowed":true}}`),
		"other resource":   text(http.StatusOK, review(`"spec":{"user":"jane","groups":["dev"],"resourceAttributes":{"resource":"pods"}},"status":{"allowed":true}`)),
		"129 conditions":   text(http.StatusOK, set(129, "a#")),
		"duplicate ids":    text(http.StatusOK, set(2, "a")),
		"invalid ids":      text(http.StatusOK, set(1, "not a key#")),
		"allows and waits": text(http.StatusOK, review(`"status":{"allowed":true,"conditionSetChain":[{"authorizerName":"a","allowed":true}]}`)),
		"is too long":      text(http.StatusOK, review(`"status":{"allowed":true}`)+strings.Repeat(" ", mostAnswer)),
	} {
		for _, policy := range []authorizer.Decision{authorizer.DecisionDeny, authorizer.DecisionNoOpinion, authorizer.DecisionAllow} {
			a, _ := serve(t, wire.ConditionSetChain, func(c *Config, p *peer) {
				c.OnError, c.Timeout = policy, 200*time.Millisecond
				p.answer["/authorize"] = answer
			})
			d := a.ConditionsAwareAuthorize(context.Background(), attributes("jane"))
			if d.Error() == nil || d.IsNoOpinion() != (policy == authorizer.DecisionNoOpinion) || d.IsDeny() == d.IsNoOpinion() {
				t.Errorf("%s, failure policy %v: got %+v, error %v", name, policy, d, d.Error())
			}
		}
	}
	// The limits themselves are no fault.
	a, _ := serve(t, wire.ConditionSetChain, func(_ *Config, p *peer) { p.answer["/authorize"] = text(http.StatusOK, set(128, "a#")) })
	if d := a.ConditionsAwareAuthorize(context.Background(), attributes("jane")); d.IsUnconditional() {
		t.Errorf("128 conditions: got %+v, error %v", d, d.Error())
	}
}

func TestK3_AFailureInAdmissionNeverAllows(t *testing.T) {
	const head = `{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview","response":`
	of := func(id string) []authorizer.Condition {
		return []authorizer.Condition{authorizer.GenericCondition{ID: id, Type: "example.com/contains", Condition: "dev"}}
	}
	mayAllow, mayDeny := authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, of("a")), authorizer.ConditionsAwareDecisionConditionsMap(of("d"), nil, of("a"))
	for name, answer := range map[string]http.HandlerFunc{
		"hangs":       hang,
		"redirects":   redirect,
		"is broken":   text(http.StatusInternalServerError, ``),
		"a review":    text(http.StatusOK, review(`"status":{"allowed":true}`)),
		"a condition": text(http.StatusOK, head+`{"uid":"1","decision":{"type":"ConditionsMap","conditionsMap":{"allowConditions":[{"id":"a"}]}}}}`),
		"another uid": text(http.StatusOK, head+`{"uid":"2","decision":{"type":"Allow","allow":{}}}}`),
		"merged text": text(http.StatusOK, head+`{"allowed":true}}`),
		"cannot tell": text(http.StatusOK, head+`{"uid":"1","decision":{"type":"NoOpinion","noOpinion":{"evaluationError":"down"}}}}`),
	} {
		for _, policy := range []authorizer.Decision{authorizer.DecisionDeny, authorizer.DecisionNoOpinion} {
			a, _ := serve(t, wire.ConditionalDecision, func(c *Config, p *peer) {
				c.OnError, c.Timeout = policy, 200*time.Millisecond
				p.answer["/conditions"] = answer
			})
			got, _, err := a.EvaluateConditions(context.Background(), mayAllow, object("dev"))
			if err == nil || got == authorizer.DecisionAllow || got == authorizer.DecisionDeny && policy == authorizer.DecisionNoOpinion {
				t.Errorf("%s, failure policy %v: got %v, error %v", name, policy, got, err)
			}
			if got, _, err := a.EvaluateConditions(context.Background(), mayDeny, object("dev")); err == nil || got != authorizer.DecisionDeny {
				t.Errorf("%s, failure policy %v, a condition may deny: got %v, error %v", name, policy, got, err)
			}
		}
	}
	a, _ := serve(t, wire.ConditionalDecision, nil)
	if got, _, err := a.EvaluateConditions(context.Background(), mayAllow, data{}); err == nil || got != authorizer.DecisionDeny {
		t.Errorf("without a request: got %v, error %v", got, err)
	}
}

func TestK3_AnAuthorizerNeedsADialectAndBothEndpoints(t *testing.T) {
	whole := Config{Name: "peer", Dialect: wire.ConditionSetChain, Timeout: time.Second, Reviews: &rest.Config{Host: "127.0.0.1:1"}, Conditions: &rest.Config{Host: "127.0.0.1:1"}}
	if _, err := New(whole); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Config){
		"no dialect":    func(c *Config) { c.Dialect = wire.None },
		"other dialect": func(c *Config) { c.Dialect = "guess" },
		"no timeout":    func(c *Config) { c.Timeout = 0 },
		"no reviews":    func(c *Config) { c.Reviews = nil },
		"no conditions": func(c *Config) { c.Conditions = nil },
	} {
		c := whole
		edit(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestK3_ADecisionWithAnErrorIsNotCached: the authorizer may be able to decide the next time.
func TestK3_ADecisionWithAnErrorIsNotCached(t *testing.T) {
	asked := 0
	a, _ := serve(t, wire.ConditionSetChain, func(_ *Config, p *peer) {
		p.answer["/authorize"] = func(w http.ResponseWriter, _ *http.Request) {
			asked++
			_, _ = io.WriteString(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false,"denied":true,"evaluationError":"the store is away"}}`)
		}
	})
	for range 2 {
		if d := a.ConditionsAwareAuthorize(t.Context(), attributes("alice")); !d.IsDeny() || d.Error() == nil {
			t.Errorf("%v, want a Deny with an error", d)
		}
	}
	if asked != 2 {
		t.Errorf("was asked %d times, want 2", asked)
	}
}
