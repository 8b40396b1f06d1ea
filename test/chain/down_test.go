//go:build integration

package chain

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// TestKEP3221_P4_WebhooksThatAreDown: what becomes of a request when an authorizer of fieldperm's cannot answer.
func TestKEP3221_P4_WebhooksThatAreDown(t *testing.T) {
	s := on(t, broken)
	t.Run("hangs for longer than admission may take", func(t *testing.T) {
		t.Parallel()
		s.answersBeforeTheAPIServerGivesUp(t)
	})
	for _, mode := range down {
		t.Run(mode+" with Deny", func(t *testing.T) {
			t.Parallel()
			s.deniesNobody(t, mode)
		})
		t.Run(mode+" with NoOpinion", func(t *testing.T) {
			t.Parallel()
			s.othersDecide(t, mode)
		})
	}
	t.Run("at the door", func(t *testing.T) {
		t.Parallel()
		answer := s.patch(t, s.wire(t, person{name: "dot", groups: []string{scalers}}), atTheDoor, replicas(2))
		// kube-apiserver tells its own log who failed.
		faulty(t, answer, "")
	})
}

// othersDecide: where a webhook is down that others may do without, they decide.
func (s *scene) othersDecide(t *testing.T, mode string) {
	namespace := downIn(mode, "NoOpinion")
	// What the scaler does not hold is asked first, and nobody knows.
	for i, c := range []struct{ group, verbs string }{{owners, "granular,granular:*"}, {scalers, "granular,granular:scale"}} {
		answer := s.patch(t, s.wire(t, person{name: "nora-" + mode + c.group, groups: []string{c.group}}), namespace, replicas(2+i))
		expect(t, answer, http.StatusOK)
		if got := s.annotations(t, answer)["authorizers"]; got != inCluster+"="+c.verbs {
			t.Errorf("audit annotation %q, want that the API server decided on %s", got, c.verbs)
		}
	}
	// Whom nobody else allows is not allowed, and not told that he may not: who is down might have said so.
	answer := s.patch(t, s.wire(t, person{name: "ned-" + mode, groups: []string{"markers"}}), namespace, replicas(4))
	faulty(t, answer, namespace)
	if series(s.metrics(t), "apiserver_authorization_webhook_evaluations_fail_open_total", `name="`+namespace+`"`) == "" {
		t.Error("that it was passed over is not counted")
	}
}

// deniesNobody: where a webhook is down that nobody may do without, nothing is allowed, and users are told of a fault,
// which may be gone when they try again.
func (s *scene) deniesNobody(t *testing.T, mode string) {
	namespace := downIn(mode, "Deny")
	for _, group := range []string{scalers, owners, "markers"} {
		answer := s.patch(t, s.wire(t, person{name: "dan-" + mode + "-" + group, groups: []string{group}}), namespace, replicas(2))
		faulty(t, answer, namespace)
	}
	// Whoever holds the generic verb is not asked about.
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	w, err := corpus.NewWire(admin.Config)
	must(t, err)
	expect(t, s.patch(t, w, namespace, replicas(3)), http.StatusOK)
}

// answersBeforeTheAPIServerGivesUp: the user hears from fieldperm which authorizer hangs, not from kube-apiserver that
// something took too long.
func (s *scene) answersBeforeTheAPIServerGivesUp(t *testing.T) {
	begin := time.Now()
	answer := s.patch(t, s.wire(t, person{name: "stan", groups: []string{scalers}}), stuck, replicas(2))
	faulty(t, answer, stuck)
	if took := time.Since(begin); took > admitTimeout {
		t.Errorf("the answer came after %s", took)
	}
}

// faulty looks whether an answer is a fault of the server that fieldperm tells of.
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
