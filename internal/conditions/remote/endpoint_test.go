package remote

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// asking returns the attributes of a request for a verb.
func asking(verb string) authorizer.Attributes {
	return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: verb, Resource: "persistentvolumes", APIVersion: "v1", ResourceRequest: true}
}

// TestK3_AHangingWebhookCostsItsTimeoutOnce: not for each verb. It is asked again after a short time, and at once about other users and objects: who
// makes it hang must not keep it from denying another request.
func TestK3_AHangingWebhookCostsItsTimeoutOnce(t *testing.T) {
	now := testingclock.NewFakeClock(time.Unix(0, 0))
	var asked atomic.Int32
	a, _ := serve(t, wire.ConditionSetChain, func(c *Config, p *peer) {
		c.Clock, c.Timeout, c.OnError = now, 100*time.Millisecond, authorizer.DecisionNoOpinion
		p.answer["/authorize"] = func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				hang(w, r)
				return
			}
			_, _ = io.WriteString(w, review(`"status":{"allowed":true}`))
		}
	})
	for range 3 {
		for _, verb := range []string{"update", "patch", "granular", "granular:*"} {
			if d := a.ConditionsAwareAuthorize(t.Context(), asking(verb)); !d.IsNoOpinion() || d.Error() == nil {
				t.Errorf("%s: %v", verb, d)
			}
		}
	}
	if asked.Load() != 1 {
		t.Errorf("was asked %d times, want 1", asked.Load())
	}
	other := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "update", Resource: "persistentvolumes", Name: "other", APIVersion: "v1", ResourceRequest: true}
	if d := a.ConditionsAwareAuthorize(t.Context(), other); !d.IsAllow() {
		t.Errorf("another object: %v", d)
	}
	if d := a.ConditionsAwareAuthorize(t.Context(), attributes("john")); !d.IsAllow() {
		t.Errorf("another user: %v", d)
	}
	now.Step(pause)
	for _, verb := range []string{"update", "patch"} {
		if d := a.ConditionsAwareAuthorize(t.Context(), asking(verb)); !d.IsAllow() {
			t.Errorf("%s: a webhook that answers again is not asked: %v", verb, d)
		}
	}
}

// TestK3_AReviewAsksAFailedEndpointOnce: also that of conditions, which other reviews go on asking: an object of one user must not be a failure
// for another.
func TestK3_AReviewAsksAFailedEndpointOnce(t *testing.T) {
	for name, fails := range map[string]http.HandlerFunc{"hangs": hang, "is broken": text(http.StatusServiceUnavailable, ``)} {
		var asked atomic.Int32
		a, _ := serve(t, wire.ConditionSetChain, func(c *Config, p *peer) {
			c.Timeout, c.OnError = 100*time.Millisecond, authorizer.DecisionNoOpinion
			p.answer["/conditions"] = func(w http.ResponseWriter, r *http.Request) { asked.Add(1); fails(w, r) }
		})
		decision := a.ConditionsAwareAuthorize(t.Context(), attributes("jane"))
		for reviews := range int32(2) {
			during := (&Review{}).During(t.Context())
			before := asked.Load()
			for range 3 {
				if got, _, err := a.EvaluateConditions(during, decision, object("dev")); got != authorizer.DecisionDeny || err == nil {
					t.Errorf("%s: %v, %v", name, got, err)
				}
			}
			if n := asked.Load() - before; n != 1 {
				t.Errorf("%s: review %d asked %d times, want 1", name, reviews, n)
			}
		}
	}
}

// TestK3_AnErrorIsAnAnswer: a webhook that refuses a question is asked the next time.
func TestK3_AnErrorIsAnAnswer(t *testing.T) {
	var asked atomic.Int32
	a, _ := serve(t, wire.ConditionSetChain, func(c *Config, p *peer) {
		p.answer["/authorize"] = func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); http.Error(w, "no", http.StatusBadRequest) }
	})
	for range 2 {
		if d := a.ConditionsAwareAuthorize(t.Context(), attributes("jane")); !d.IsDeny() || d.Error() == nil {
			t.Errorf("%v", d)
		}
	}
	if asked.Load() != 2 {
		t.Errorf("was asked %d times, want 2: it answers", asked.Load())
	}
}

// TestP8_TheSameQuestionIsAskedOnceAtATime: for all callers that ask it.
func TestP8_TheSameQuestionIsAskedOnceAtATime(t *testing.T) {
	const callers = 20
	var asked atomic.Int32
	open := make(chan struct{})
	a, _ := serve(t, wire.ConditionSetChain, func(c *Config, p *peer) {
		p.answer["/authorize"] = func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			<-open
			_, _ = io.WriteString(w, review(`"status":{"allowed":true}`))
		}
	})
	var waiting sync.WaitGroup
	for range callers {
		waiting.Go(func() {
			if d := a.ConditionsAwareAuthorize(t.Context(), attributes("jane")); !d.IsAllow() {
				t.Errorf("%v", d)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	close(open)
	waiting.Wait()
	if asked.Load() != 1 {
		t.Errorf("was asked %d times, want 1", asked.Load())
	}
}

// TestK3_ReviewsAreJSON: an endpoint that reads the content type refuses others.
func TestK3_ReviewsAreJSON(t *testing.T) {
	var types []string
	a, _ := serve(t, wire.ConditionSetChain, func(_ *Config, p *peer) {
		for path, body := range map[string]string{"/authorize": set(1, "a#"), "/conditions": evaluation(`{"allowed":true}`)} {
			p.answer[path] = func(w http.ResponseWriter, r *http.Request) {
				types = append(types, r.Header.Get("Content-Type"))
				_, _ = io.WriteString(w, body)
			}
		}
	})
	if got, _, err := a.EvaluateConditions(t.Context(), a.ConditionsAwareAuthorize(t.Context(), attributes("jane")), object("dev")); got != authorizer.DecisionAllow || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if want := []string{"application/json", "application/json"}; !slices.Equal(types, want) {
		t.Errorf("sent with the types %q", types)
	}
}

// TestK3_TheCacheIsBoundedByBytes: a peer chooses how large its answers are.
func TestK3_TheCacheIsBoundedByBytes(t *testing.T) {
	c := newDecisionCache(testingclock.NewFakeClock(time.Unix(0, 0)))
	decision := authorizer.ConditionsAwareDecisionAllow("", nil)
	for i := range 2 * mostCached / largestCached {
		c.put(fmt.Sprint(i), decision, largestCached-100, time.Minute)
		if _, ok := c.get("0"); !ok {
			t.Fatalf("a decision that is used was evicted after %d others", i)
		}
		if c.bytes > mostCached {
			t.Fatalf("has %d bytes, want at most %d", c.bytes, mostCached)
		}
	}
	if _, ok := c.get("1"); ok || len(c.entries) != c.order.Len() {
		t.Errorf("the oldest decision is still there, of %d and %d", len(c.entries), c.order.Len())
	}
	c.put("large", decision, largestCached, time.Minute)
	if _, ok := c.get("large"); ok {
		t.Error("a large answer is cached")
	}
	c.put("0", decision, 0, 0)
	for key := range c.entries {
		c.put(key, decision, 10, time.Minute)
	}
	if want := len(c.entries) * (overhead + 10); c.bytes < want || c.bytes > want+10*len(c.entries) {
		t.Errorf("has %d bytes after each decision was replaced, want about %d", c.bytes, want)
	}
}

// TestK3_DecisionsOnUsersWithManyGroupsAreCached: their conditions are kept until admission, too.
func TestK3_DecisionsOnUsersWithManyGroupsAreCached(t *testing.T) {
	a, p := serve(t, wire.ConditionSetChain, nil)
	var groups []string
	for i := range 150 {
		groups = append(groups, fmt.Sprintf("cn=team-%03d,ou=groups,ou=departments,dc=example,dc=com,dc=corp,dc=int", i))
	}
	of := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane", Groups: groups}, Verb: "create", Resource: "persistentvolumes", APIVersion: "v1", ResourceRequest: true}
	for range 3 {
		a.ConditionsAwareAuthorize(t.Context(), of)
	}
	if p.reviews.Load() != 1 {
		t.Errorf("was asked %d times, want 1", p.reviews.Load())
	}
}

// TestK3_ErrorsOfPeersAreShort: users see them.
func TestK3_ErrorsOfPeersAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, body := range map[string]string{
		"a name":       review(`"status":{"allowed":false,"conditionSetChain":[{"authorizerName":"` + long + `","allowed":true}]}`),
		"an effect":    review(`"status":{"allowed":false,"conditionSetChain":[{"authorizerName":"a","conditions":[{"id":"a","effect":"` + long + `","condition":"x"}]}]}`),
		"another user": review(`"spec":{"user":"` + long + `"},"status":{"allowed":true}`),
	} {
		a, _ := serve(t, wire.ConditionSetChain, func(_ *Config, p *peer) { p.answer["/authorize"] = text(http.StatusOK, body) })
		if d := a.ConditionsAwareAuthorize(t.Context(), attributes("jane")); d.Error() == nil || len(d.Error().Error()) > maxError {
			t.Errorf("%s: no error, or a long one", name)
		}
	}
}
