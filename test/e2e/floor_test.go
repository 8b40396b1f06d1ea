//go:build integration

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// everything is a barrier on every field of every resource for users with only the generic verbs.
const everything = `apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: everything}
spec: {uncoveredPermissions: ['granular:*']}
`

// TestD4_D5_TheFloorAndTheGlass: with a barrier on everything and without fieldperm, a control plane continues to run: leases are renewed,
// nodes report, reviews are answered, and Pods of DaemonSets in kube-system start. All other writes fail until a member of system:masters
// runs the one documented command.
func TestD4_D5_TheFloorAndTheGlass(t *testing.T) {
	file := filepath.Join(t.TempDir(), "everything.yaml")
	must(t, os.WriteFile(file, []byte(everything), 0o600))
	s := startOwn(t, stack.Config{Schemas: []string{file}})
	admin := wire(t, s, "admin", "system:masters")
	post := func(w *corpus.Wire, path, body string) *corpus.Answer {
		return send(t, w, http.MethodPost, path, "application/json", fields(t, body))
	}
	// RBAC has the DaemonSet controller of kube-system. Its service account is a user in this test.
	grant(t, s, "editor", rule("", []string{"configmaps", "pods", "nodes", "nodes/status"}, "create", "update", "patch"),
		rule("coordination.k8s.io", []string{"leases"}, "create", "update", "patch"),
		rule("authorization.k8s.io", []string{"subjectaccessreviews"}, "create"),
		rule("authentication.k8s.io", []string{"tokenreviews"}, "create"))
	const (
		maps    = "/api/v1/namespaces/default/configmaps"
		leases  = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
		daemons = "system:serviceaccount:kube-system:daemon-set-controller"
		node    = "/api/v1/nodes/n1"
	)
	expect(t, post(admin, "/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"role":"worker"}}}`), 201)
	editor, kubelet, daemonSets := wire(t, s, "editor"), wire(t, s, "system:node:n1", "system:nodes"), wire(t, s, daemons, "system:serviceaccounts:kube-system")
	pod := func(name string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"a","image":"a"}]}}`
	}
	heartbeat := func(w *corpus.Wire, metadata string) *corpus.Answer {
		return send(t, w, http.MethodPatch, node+"/status", merge, fields(t, `{"metadata":`+metadata+`,"status":{"phase":"Running"}}`))
	}
	configMap := func(name string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"k":"v"}}`
	}
	grant(t, s, daemons, rule("", []string{"pods"}, "create"))
	for _, namespace := range []string{"kube-system", "default"} {
		send(t, admin, http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts", "application/json", fields(t, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`))
	}
	// A write that a barrier reaches is refused while fieldperm runs.
	eventually(t, func() *corpus.Answer { return post(editor, maps, configMap("barred")) }, 403)
	expect(t, post(daemonSets, "/api/v1/namespaces/default/pods", pod("barred")), 403)
	expect(t, heartbeat(editor, "{}"), 403)

	must(t, s.StopWebhook())
	t.Run("Floor", func(t *testing.T) {
		expect(t, post(editor, leases, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"x"},"spec":{"holderIdentity":"x"}}`), 201)
		expect(t, post(editor, "/apis/authorization.k8s.io/v1/subjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"x","resourceAttributes":{"verb":"get","resource":"pods"}}}`), 201)
		expect(t, post(editor, "/apis/authentication.k8s.io/v1/tokenreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}`), 201)
		expect(t, heartbeat(kubelet, "{}"), 200)
		expect(t, post(daemonSets, "/api/v1/namespaces/kube-system/pods", pod("network")), 201)
	})
	t.Run("AboveTheFloor", func(t *testing.T) {
		for what, answer := range map[string]*corpus.Answer{
			"a configmap":                      post(editor, maps, configMap("down")),
			"a Pod of a DaemonSet of users":    post(daemonSets, "/api/v1/namespaces/default/pods", pod("down")),
			"a Pod of a user in kube-system":   post(editor, "/api/v1/namespaces/kube-system/pods", pod("down")),
			"status of a node by another user": heartbeat(editor, "{}"),
			"an annotation by a heartbeat":     heartbeat(kubelet, `{"annotations":{"a":"b"}}`),
		} {
			if answer.Code != 500 || !strings.Contains(answer.Status.Message, "uncovered.fieldperm.dev") {
				t.Errorf("%s: got %d, want 500: %s", what, answer.Code, answer.Body)
			}
		}
	})
	t.Run("BreakGlass", func(t *testing.T) {
		const command = "delete validatingwebhookconfiguration fieldperm-uncovered"
		page, err := os.ReadFile("../../docs/install/README.md")
		must(t, err)
		if !strings.Contains(string(page), "kubectl "+command+"\n") {
			t.Errorf("docs/install/README.md does not have kubectl %s", command)
		}
		// An administrator by RBAC may not, because the guard refuses it.
		grant(t, s, "root", rule("*", []string{"*"}, "*"))
		root, err := s.User("root")
		must(t, err)
		if _, stderr, err := s.Kubectl(root).Run(t.Context(), "", strings.Fields(command)...); err == nil || !strings.Contains(stderr, "members of system:masters only") {
			t.Errorf("root may delete it: %v, %s", err, stderr)
		}
		mustKubectl(t, s, "", strings.Fields(command)...)
		eventually(t, func() *corpus.Answer { return post(editor, maps, configMap("free")) }, 201)
	})
	t.Run("Again", func(t *testing.T) {
		must(t, s.StartWebhook(t.Context()))
		must(t, s.AwaitBarriers(t.Context()))
		eventually(t, func() *corpus.Answer { return post(editor, maps, configMap("barred")) }, 403)
	})
}
