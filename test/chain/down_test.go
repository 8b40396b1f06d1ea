//go:build integration

package chain

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// TestKEP3221_P4_WebhooksThatAreDown: how fieldperm answers a request when one of its authorizers cannot answer.
func TestKEP3221_P4_WebhooksThatAreDown(t *testing.T) {
	s := on(t, broken)
	t.Run("hangs for longer than admission may take", func(t *testing.T) {
		t.Parallel()
		s.answersBeforeTheTimeout(t)
	})
	for _, mode := range down {
		t.Run(mode+" with Deny", func(t *testing.T) {
			t.Parallel()
			s.deniesNoUser(t, mode)
		})
		t.Run(mode+" with NoOpinion", func(t *testing.T) {
			t.Parallel()
			s.otherAuthorizersDecide(t, mode)
		})
	}
	t.Run("at the door", func(t *testing.T) {
		t.Parallel()
		answer := s.patch(t, s.wire(t, person{name: "dot", groups: []string{scalers}}), atTheDoor, replicas(2))
		// kube-apiserver writes the name of the failed authorizer only to its own log.
		faulty(t, answer, "")
	})
}

// otherAuthorizersDecide: if the failurePolicy of a webhook that is down is NoOpinion, the other authorizers decide.
func (s *scene) otherAuthorizersDecide(t *testing.T, mode string) {
	namespace := downIn(mode, "NoOpinion")
	// fieldperm first asks for a verb that the scaler does not hold, and no authorizer knows the answer.
	for i, c := range []struct{ group, verbs string }{{owners, "granular,granular:*"}, {scalers, "granular,granular:scale"}} {
		answer := s.patch(t, s.wire(t, person{name: "nora-" + mode + c.group, groups: []string{c.group}}), namespace, replicas(2+i))
		expect(t, answer, http.StatusOK)
		if got := s.annotations(t, answer)["authorizers"]; got != inCluster+"="+c.verbs {
			t.Errorf("audit annotation %q, want that the API server decided on %s", got, c.verbs)
		}
	}
	// A user that no other authorizer allows is not allowed. But the answer is no denial, because the webhook that is down might have
	// allowed the request.
	answer := s.patch(t, s.wire(t, person{name: "ned-" + mode, groups: []string{"markers"}}), namespace, replicas(4))
	faulty(t, answer, namespace)
	if series(s.metrics(t), "apiserver_authorization_webhook_evaluations_fail_open_total", `name="`+namespace+`"`) == "" {
		t.Error("that it was passed over is not counted")
	}
}

// deniesNoUser: if the failurePolicy of a webhook that is down does not permit a decision without it, nothing is allowed. Users get a
// server error and no denial, because the error may be gone when they try again.
func (s *scene) deniesNoUser(t *testing.T, mode string) {
	namespace := downIn(mode, "Deny")
	for _, group := range []string{scalers, owners, "markers"} {
		answer := s.patch(t, s.wire(t, person{name: "dan-" + mode + "-" + group, groups: []string{group}}), namespace, replicas(2))
		faulty(t, answer, namespace)
	}
	// A user with the generic verb needs no check.
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	w, err := corpus.NewWire(admin.Config)
	must(t, err)
	expect(t, s.patch(t, w, namespace, replicas(3)), http.StatusOK)
}

// answersBeforeTheTimeout: the user gets from fieldperm the name of the authorizer that hangs, and not a timeout from
// kube-apiserver.
func (s *scene) answersBeforeTheTimeout(t *testing.T) {
	begin := time.Now()
	answer := s.patch(t, s.wire(t, person{name: "stan", groups: []string{scalers}}), stuck, replicas(2))
	faulty(t, answer, stuck)
	if took := time.Since(begin); took > admitTimeout {
		t.Errorf("the answer came after %s", took)
	}
}

// faulty checks that an answer is a server error that fieldperm explains.
func faulty(t *testing.T, answer *corpus.Answer, names string) {
	t.Helper()
	code, message := answer.Code, answer.Status.Message
	if code != http.StatusInternalServerError && code != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 500 or 503: %s", code, message)
	}
	if names != "" && (!strings.Contains(message, names) || !strings.Contains(message, "granular.fieldperm.dev")) {
		t.Errorf("message %q does not name %q, or is not fieldperm's", message, names)
	}
	for _, part := range []string{"failed calling webhook", "may not change", "forbidden"} {
		if strings.Contains(message, part) {
			t.Errorf("message %q has %q", message, part)
		}
	}
}
