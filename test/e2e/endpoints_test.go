//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// TestA4_ABarrierOnEventsHoldsInBothGroups: two API groups serve Events, and kube-apiserver converts a request for a webhook only if no
// rule names the requested group. A set for one group must not remove the barrier of the other group.
func TestA4_ABarrierOnEventsHoldsInBothGroups(t *testing.T) {
	s := start(t)
	install(t, s)
	grant(t, s, "recorder", rule("", []string{"events"}, "create"), rule("events.k8s.io", []string{"events"}, "create"))
	recorder := wire(t, s, "recorder")
	// The Event is created, because events.k8s.io permits no change of a field.
	record := func(path, body string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, recorder, http.MethodPost, path, "application/json", fields(t, body), "dryRun=All")
		}
	}
	core := record("/api/v1/namespaces/default/events", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"twice"},
		"involvedObject":{"kind":"ConfigMap","name":"a","namespace":"default"},"reason":"First"}`)
	events := record("/apis/events.k8s.io/v1/namespaces/default/events", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"twice"},
		"regarding":{"kind":"ConfigMap","name":"a","namespace":"default"},"reason":"First","action":"Test","type":"Normal",
		"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"example.com/test","reportingInstance":"test"}`)
	expect(t, core(), 201)
	expect(t, events(), 201)

	set := func(name, verb, group string) string {
		return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: " + name + "}\nspec: {uncoveredPermissions: ['granular:" + verb + "'], resources: [{apiGroups: ['" + group + "'], resources: [events]}]}\n"
	}
	remove(t, s, "uncoveredpermissionset", "events-reason")
	remove(t, s, "uncoveredpermissionset", "events-related")
	apply(t, s, set("events-related", "relatedObject", "events.k8s.io"))
	apply(t, s, set("events-reason", "reason", ""))
	inForce(t, "barrier of core, by core", core, 403)
	inForce(t, "barrier of core, by events.k8s.io", events, 403)
}

// TestA5_ABarrierOnPodsHoldsForBindings: both endpoints for bindings write the annotations and the node of the Pod.
func TestA5_ABarrierOnPodsHoldsForBindings(t *testing.T) {
	s := start(t)
	install(t, s)
	grant(t, s, "binder", rule("", []string{"pods/binding", "bindings"}, "create"))
	binder := wire(t, s, "binder")
	remove(t, s, "pod", "unbound")
	put(t, s, "apiVersion: v1\nkind: Pod\nmetadata: {name: unbound}\nspec: {containers: [{name: a, image: registry.example/a:1}]}\n")
	bind := func(path, metadata string) func() *corpus.Answer {
		return func() *corpus.Answer {
			body := fields(t, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"unbound"`+metadata+`},"target":{"kind":"Node","name":"node"}}`)
			return send(t, binder, http.MethodPost, path, "application/json", body, "dryRun=All")
		}
	}
	const annotation = `,"annotations":{"binder.example.com/a":"b"}`
	remove(t, s, "permissionschema", "binder")
	apply(t, s, "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: binder}\nspec: {kind: Pod, permissions: [{path: '.metadata.annotations[\"binder.example.com/a\"]', verb: example.com/binder, excluded: true}]}\n")
	for _, path := range []string{"/api/v1/namespaces/default/pods/unbound/binding", "/api/v1/namespaces/default/bindings"} {
		answer := inForce(t, path, bind(path, annotation), 403)
		if !strings.Contains(answer.Status.Message, "granular:example.com/binder") {
			t.Errorf("%s: message %q does not name the barrier's verb", path, answer.Status.Message)
		}
		// A write of a field without a barrier passes.
		expect(t, bind(path, "")(), 201)
	}

	remove(t, s, "uncoveredpermissionset", "placement")
	apply(t, s, "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: placement}\nspec: {uncoveredPermissions: ['granular:nodeAssignment'], resources: [{apiGroups: [''], resources: [pods]}]}\n")
	for _, path := range []string{"/api/v1/namespaces/default/pods/unbound/binding", "/api/v1/namespaces/default/bindings"} {
		inForce(t, "a set on pods, by "+path, bind(path, ""), 403)
	}
	grant(t, s, "binder-of-nodes", rule("", []string{"pods/binding"}, "create", "granular:nodeAssignment"))
	scheduler := wire(t, s, "binder-of-nodes")
	expect(t, send(t, scheduler, http.MethodPost, "/api/v1/namespaces/default/pods/unbound/binding", "application/json",
		fields(t, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"unbound"},"target":{"kind":"Node","name":"node"}}`), "dryRun=All"), 201)
}
