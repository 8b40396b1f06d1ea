//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

func schemaOf(name, group, kind, entry string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: " + name + "}\nspec: {group: '" + group + "', kind: " + kind + ", permissions: [" + entry + "]}\n"
}

// TestC2_W2_OneObjectOfTwoKinds: a barrier guards one kind, and another kind has the same name or the same object.
func TestC2_W2_OneObjectOfTwoKinds(t *testing.T) {
	s := startOwn(t, stack.Config{})
	install(t, s)
	t.Run("Twin", func(t *testing.T) { verbsOfTheTwinPassNoBarrier(t, s) })
	t.Run("ForeignVersion", func(t *testing.T) { definitionsOfBuiltInKindsAreIgnored(t, s) })
}

// verbsOfTheTwinPassNoBarrier: an Event also has the verb that events.k8s.io has for the same field. That verb is not below the barrier.
func verbsOfTheTwinPassNoBarrier(t *testing.T, s *stack.Stack) {
	t.Helper()
	for user, verbs := range map[string][]string{
		"marked": {"granular", "granular:occurrences"}, "updater": {"update", "patch", "granular:occurrences"}, "counter": {"granular", "granular:example.com/count"},
	} {
		grant(t, s, user, rule("", []string{"events"}, verbs...), rule("events.k8s.io", []string{"events"}, verbs...))
	}
	put(t, s, "apiVersion: v1\nkind: Event\nmetadata: {name: twin, namespace: default}\ninvolvedObject: {kind: Pod, name: x, namespace: default}\ncount: 1\n")
	remove(t, s, "event", "twin")
	write := func(user, path, body string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, wire(t, s, user), http.MethodPatch, path+"/namespaces/default/events/twin", merge, fields(t, body), "dryRun=All")
		}
	}
	expect(t, write("marked", "/api/v1", `{"count":2}`)(), 200)
	remove(t, s, "permissionschema", "twin")
	apply(t, s, schemaOf("twin", "", "Event", "{path: .count, verb: example.com/count, excluded: true}"))
	enforced(t, s, "permissionschema", "twin", "True Enforced")
	for _, user := range []string{"marked", "updater"} {
		expect(t, write(user, "/api/v1", `{"count":2}`)(), 403)
	}
	expect(t, write("counter", "/api/v1", `{"count":2}`)(), 200)
}

// definitionsOfBuiltInKindsAreIgnored: kube-apiserver accepts such a definition, but serves nothing of it. The kind does not change.
func definitionsOfBuiltInKindsAreIgnored(t *testing.T, s *stack.Stack) {
	t.Helper()
	const types = "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {other: {type: string}}}}}}"
	grant(t, s, "isolator", rule("networking.k8s.io", []string{"networkpolicies"}, "granular", "granular:policyTypes", "granular:specification"))
	grant(t, s, "keeper", rule("networking.k8s.io", []string{"networkpolicies"}, "update", "patch"))
	const path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/foreign"
	put(t, s, "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: foreign, namespace: default}\nspec: {podSelector: {}}\n")
	remove(t, s, "networkpolicy.v1.networking.k8s.io", "foreign")
	remove(t, s, "permissionschema", "foreign")
	apply(t, s, schemaOf("foreign", "networking.k8s.io", "NetworkPolicy", "{path: .metadata.annotations, verb: example.com/notes, excluded: true, parameterSource: annotationKey}"))
	enforced(t, s, "permissionschema", "foreign", "True Enforced")
	spec := fields(t, `{"spec":{"policyTypes":["Egress"]}}`)
	asBefore := func() {
		t.Helper()
		for _, user := range []string{"isolator", "keeper"} {
			expect(t, send(t, wire(t, s, user), http.MethodPatch, path, merge, spec, "dryRun=All"), 200)
		}
		expect(t, send(t, wire(t, s, "keeper"), http.MethodPatch, path, merge, fields(t, `{"metadata":{"annotations":{"a":"b"}}}`), "dryRun=All"), 403)
	}
	asBefore()
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: networkpolicies.networking.k8s.io, annotations: {api-approved.kubernetes.io: 'unapproved, a test'}}\n" +
		"spec: {group: networking.k8s.io, scope: Namespaced, names: {plural: networkpolicies, kind: NetworkPolicy}, versions: [{name: v9, served: true, storage: true, " + types + "}, {name: v1, served: true, storage: false, " + types + "}]}\n"
	if _, stderr, err := kubectl(t, s, definition, "create", "-f", "-"); err == nil || !strings.Contains(stderr, "is built in: choose another group") {
		t.Errorf("a definition is let in: %v %s", err, stderr)
	}
	// The definition may be older than fieldperm, or was created while fieldperm was down.
	must(t, s.StopWebhook())
	remove(t, s, "customresourcedefinition", "networkpolicies.networking.k8s.io")
	put(t, s, definition)
	established(t, s, "networkpolicies.networking.k8s.io")
	eventually(t, func() *corpus.Answer {
		return send(t, wire(t, s, "admin", "system:masters"), http.MethodGet, "/apis/apiregistration.k8s.io/v1/apiservices/v9.networking.k8s.io", "", nil)
	}, 200)
	expect(t, send(t, wire(t, s, "admin", "system:masters"), http.MethodGet, "/apis/networking.k8s.io/v9/namespaces/default/networkpolicies", "", nil), 404)
	must(t, s.StartWebhook(t.Context()))
	enforced(t, s, "permissionschema", "foreign", "True Enforced")
	eventually(t, func() *corpus.Answer {
		return send(t, wire(t, s, "isolator"), http.MethodPatch, path, merge, spec, "dryRun=All")
	}, 200)
	asBefore()
}
