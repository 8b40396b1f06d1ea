//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// TestA7_WhoMayNotReadIsNotLetInToWrite: kube-apiserver evaluates a patch against the object, answers a JSON Patch that tests a value by the
// value, and quotes the object in errors, all before admission. So neither the marker nor a condition lets a user in without get.
func TestA7_WhoMayNotReadIsNotLetInToWrite(t *testing.T) {
	s := start(t)
	install(t, s)
	remove(t, s, "secret", "read")
	put(t, s, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"read","labels":{"team":"blue"}},"data":{"k":"dmFsdWU="}}`)
	const path = "/api/v1/namespaces/default/secrets/read"
	secrets := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}
	}
	grant(t, s, "blind", secrets("granular", "granular:*"))
	grant(t, s, "elsewhere", secrets("granular"), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"other"}, Verbs: []string{"get"}})
	policy(t, s, "red", &v1alpha1.ConditionalPolicySpec{
		Subjects: []v1alpha1.Subject{{Kind: "User", Name: "conditional"}}, Verbs: []string{"update", "patch"}, Effect: v1alpha1.PolicyAllow,
		Resources: []v1alpha1.PolicyResource{{APIGroups: []string{""}, Resources: []string{"secrets"}}},
		Condition: `object.metadata.?labels.orValue({}).?team.orValue("") == "red"`,
	})
	const jsonPatch = "application/json-patch+json"
	for _, user := range []string{"blind", "elsewhere", "conditional"} {
		w := wire(t, s, user)
		for name, write := range map[string]struct {
			contentType string
			body        any
		}{
			"a patch of nothing":          {merge, fields(t, `{}`)},
			"a patch that is not valid":   {merge, fields(t, `{"metadata":{"annotations":"x"}}`)},
			"a patch that tests a value":  {jsonPatch, []map[string]any{{"op": "test", "path": "/data/k", "value": "dmFsdWU="}}},
			"a patch that tests in vain":  {jsonPatch, []map[string]any{{"op": "test", "path": "/data/k", "value": "b3RoZXI="}}},
			"a patch of a covered change": {merge, fields(t, `{"metadata":{"labels":{"team":"red"}}}`)},
		} {
			answer := send(t, w, http.MethodPatch, path, write.contentType, write.body, "dryRun=All")
			const reason = `granular: the user lacks "get" on secrets "read", and kube-apiserver reads the object for the user before admission: grant get`
			if answer.Code != http.StatusForbidden || !strings.Contains(answer.Status.Message, reason) || strings.Contains(string(answer.Body), "dmFsdWU=") {
				t.Errorf("%s, %s: %d %s", user, name, answer.Code, answer.Body)
			}
		}
	}
	// A new object shows nothing that the user has not sent.
	expect(t, send(t, wire(t, s, "blind"), http.MethodPost, "/api/v1/namespaces/default/secrets", "application/json", fields(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"new"},"data":{"k":"dmFsdWU="}}`), "dryRun=All"), 201)

	// With get the marker lets the user in, and the generic verb needs no get, as in Kubernetes.
	grant(t, s, "reader", secrets("get", "granular"))
	grant(t, s, "patcher", secrets("patch"))
	expect(t, send(t, wire(t, s, "reader"), http.MethodPatch, path, merge, fields(t, `{}`)), 200)
	refused(t, send(t, wire(t, s, "reader"), http.MethodPatch, path, merge, fields(t, `{"data":{"k":"b3RoZXI="}}`)))
	expect(t, send(t, wire(t, s, "patcher"), http.MethodPatch, path, merge, fields(t, `{}`)), 200)
}

// TestA7_TheSubresourceIsReadToo: a Scale is read through the subresource, so get on the object is not enough.
func TestA7_TheSubresourceIsReadToo(t *testing.T) {
	s := start(t)
	remove(t, s, "deployment", "read")
	mustKubectl(t, s, "", "create", "deployment", "read", "--image=a")
	scale := func(resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: resources, Verbs: []string{"get"}}
	}
	marked := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"granular", "granular:scale"}}
	grant(t, s, "object", marked, scale("deployments"))
	grant(t, s, "scale", marked, scale("deployments/scale"))
	for user, code := range map[string]int{"object": 403, "scale": 200} {
		answer := send(t, wire(t, s, user), http.MethodPatch, "/apis/apps/v1/namespaces/default/deployments/read/scale", merge, fields(t, `{"spec":{"replicas":2}}`), "dryRun=All")
		if expect(t, answer, code); code == 403 && !strings.Contains(answer.Status.Message, `lacks "get" on deployments.apps/scale "read"`) {
			t.Errorf("%s: %s", user, answer.Body)
		}
	}
}
