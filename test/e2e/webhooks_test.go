//go:build integration

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestW1_W3_FieldpermDown: while fieldperm is down, users with a generic verb can still write all resources without barriers, each with the
// requests that its verb permits; the API server itself evaluates the condition of W1. No other user can write, and after fieldperm is
// back, users with the marker can write again.
func TestW1_W3_FieldpermDown(t *testing.T) {
	// The rules of a barrier stay for a while after it, and other tests have barriers in ConfigMaps.
	s := startOwn(t, stack.Config{})
	maps := []string{"configmaps"}
	grant(t, s, "creator", rule("", maps, "create"))
	grant(t, s, "updater", rule("", maps, "update"))
	grant(t, s, "patcher", rule("", maps, "patch"))
	grant(t, s, "marked", rule("", maps, "granular", "granular:data"))
	admin := wire(t, s, "admin", "system:masters")
	const all, one = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/w1"
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w1"},"data":{"k":"1"}}`

	stop(t, s)
	expect(t, send(t, wire(t, s, "creator"), http.MethodPost, all, "application/json", fields(t, object)), 201)
	t.Cleanup(func() { send(t, admin, http.MethodDelete, one, "", nil) })
	expect(t, send(t, wire(t, s, "updater"), http.MethodPut, one, "application/json", fields(t, strings.Replace(object, `"1"`, `"2"`, 1))), 200)
	expect(t, send(t, wire(t, s, "patcher"), http.MethodPatch, one, merge, fields(t, `{"data":{"k":"3"}}`)), 200)
	expect(t, send(t, wire(t, s, "patcher"), http.MethodPatch, one, "application/apply-patch+yaml", fields(t, strings.Replace(object, `"k":"1"`, `"l":"4"`, 1)), "fieldManager=patcher"), 200)
	expect(t, send(t, admin, http.MethodPatch, one, merge, fields(t, `{"data":{"k":"5"}}`)), 200)
	refused(t, send(t, wire(t, s, "marked"), http.MethodPatch, one, merge, fields(t, `{"data":{"k":"6"}}`)))
	refused(t, send(t, wire(t, s, "creator"), http.MethodPatch, one, merge, fields(t, `{"data":{"k":"6"}}`)))

	must(t, s.StartWebhook(t.Context()))
	eventually(t, func() *corpus.Answer {
		return send(t, wire(t, s, "marked"), http.MethodPatch, one, merge, fields(t, `{"data":{"k":"7"}}`))
	}, 200)
	answer := send(t, wire(t, s, "marked"), http.MethodPatch, one, merge, fields(t, `{"metadata":{"labels":{"a":"b"}}}`))
	expect(t, answer, 403)
}

// TestW2_FieldpermDown: while fieldperm is down, only members of system:masters can write resources with barriers. So the API server's own
// writes never wait for fieldperm.
func TestW2_FieldpermDown(t *testing.T) {
	s := start(t)
	grant(t, s, "owner", rule("", []string{"namespaces"}, "update", "patch"))
	admin := wire(t, s, "admin", "system:masters")
	const one = "/api/v1/namespaces/w2"
	expect(t, send(t, admin, http.MethodPost, "/api/v1/namespaces", "application/json", fields(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"w2"}}`)), 201)
	expect(t, send(t, wire(t, s, "owner"), http.MethodPatch, one, merge, fields(t, `{"metadata":{"labels":{"a":"1"}}}`)), 200)

	stop(t, s)
	answer := send(t, wire(t, s, "owner"), http.MethodPatch, one, merge, fields(t, `{"metadata":{"labels":{"a":"2"}}}`))
	expect(t, answer, 500)
	if !strings.Contains(answer.Status.Message, "uncovered.fieldperm.dev") {
		t.Errorf("message %q does not name the webhook", answer.Status.Message)
	}
	expect(t, send(t, admin, http.MethodPatch, one, merge, fields(t, `{"metadata":{"labels":{"a":"3"}}}`)), 200)
	// A definition has a barrier, and the API server writes its status.
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.w2.example.com"},"spec":{"group":"w2.example.com","scope":"Namespaced","names":{"kind":"Thing","plural":"things"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	expect(t, send(t, admin, http.MethodPost, definitions, "application/json", fields(t, definition)), 201)
	t.Cleanup(func() { send(t, admin, http.MethodDelete, definitions+"/things.w2.example.com", "", nil) })
	eventually(t, func() *corpus.Answer {
		return send(t, admin, http.MethodGet, "/apis/w2.example.com/v1/things", "", nil)
	}, 200)

	must(t, s.StartWebhook(t.Context()))
	expect(t, send(t, wire(t, s, "owner"), http.MethodPatch, one, merge, fields(t, `{"metadata":{"labels":{"a":"4"}}}`)), 200)
}

// stop stops fieldperm, and makes sure that it runs again for the next test.
func stop(t *testing.T, s *stack.Stack) {
	t.Helper()
	must(t, s.StopWebhook())
	t.Cleanup(func() {
		if t.Failed() {
			_ = s.StartWebhook(context.WithoutCancel(t.Context())) // It may be running already.
		}
	})
}

func expect(t *testing.T, answer *corpus.Answer, code int) {
	t.Helper()
	if answer.Code != code {
		t.Fatalf("got %d, want %d: %s", answer.Code, code, answer.Body)
	}
}

// refused checks for a 403, or for a 500 because fieldperm could neither be asked to authorize nor to admit.
func refused(t *testing.T, answer *corpus.Answer) {
	t.Helper()
	if answer.Code != 403 && answer.Code != 500 {
		t.Fatalf("got %d, want 403 or 500: %s", answer.Code, answer.Body)
	}
}
