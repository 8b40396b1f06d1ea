//go:build integration

package e2e

import (
	"net/http"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestW4_FieldpermMakesItsEventsBehindABarrier: a barrier at the root of Events refuses the Events of other users. fieldperm's own Events
// pass, because its Role has the verb.
func TestW4_FieldpermMakesItsEventsBehindABarrier(t *testing.T) {
	s := startOwn(t, stack.Config{})
	install(t, s)
	grant(t, s, "recorder", rule("events.k8s.io", []string{"events"}, "create"))
	record := func(user, namespace string) func() *corpus.Answer {
		w := wire(t, s, user)
		return func() *corpus.Answer {
			return send(t, w, http.MethodPost, "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events", "application/json", fields(t, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"one"},
				"regarding":{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","name":"fieldperm"},"reason":"EnforcementNotProven","action":"Test","type":"Warning",
				"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"fieldperm.dev/webhook","reportingInstance":"test"}`), "dryRun=All")
		}
	}
	apply(t, s, uncoveredSet("events", "granular:*", "events.k8s.io", "events"))
	inForce(t, "of another user with the name of fieldperm as reporter", record("recorder", "default"), 403)
	expect(t, record(stack.User, "default")(), 201)
	expect(t, record(stack.User, "kube-system")(), 403)
}
