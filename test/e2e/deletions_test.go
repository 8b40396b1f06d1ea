//go:build integration

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
)

// denial returns a policy that denies a user the deletion of what has the label keep.
func denial(user string, resources ...string) *v1alpha1.ConditionalPolicySpec {
	return &v1alpha1.ConditionalPolicySpec{
		Subjects: []v1alpha1.Subject{{Kind: "User", Name: user}}, Verbs: []string{"delete", "deletecollection"}, Effect: v1alpha1.PolicyDeny,
		Resources: []v1alpha1.PolicyResource{{APIGroups: []string{""}, Resources: resources}},
		Condition: `oldObject.metadata.?labels.orValue({}).?keep.orValue("") == "yes"`,
	}
}

// remover sends deletions. RBAC binds the controllers of kube-system, whose service accounts are users here.
type remover struct{ s *stack.Stack }

func (r *remover) do(t *testing.T, user, path string, query ...string) *corpus.Answer {
	t.Helper()
	groups := []string{"system:authenticated"}
	if strings.HasPrefix(user, "system:node:") {
		groups = append(groups, "system:nodes")
	}
	return send(t, wire(t, r.s, user, groups...), http.MethodDelete, path, "", nil, query...)
}

// object creates an object with a label.
func (r *remover) object(t *testing.T, kind, namespace, name, keep string) {
	t.Helper()
	object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "labels": map[string]any{"keep": keep}}}
	if namespace != "" {
		object["metadata"].(map[string]any)["namespace"] = namespace
	}
	if kind == "Pod" {
		object["spec"] = map[string]any{"automountServiceAccountToken": false, "containers": []any{map[string]any{"name": "a", "image": "a"}}}
	}
	create(t, r.s, object)
}

// TestK5_W2_ADenyOfDeletionsBindsWhomItNames: only the users of the policy meet it. Namespaces and garbage are removed although the webhook
// is asked about their contents, and a resource without a policy has no rule.
func TestK5_W2_ADenyOfDeletionsBindsWhomItNames(t *testing.T) {
	s := startOwn(t, stack.Config{Topology: stack.REST})
	install(t, s)
	r := &remover{s}
	for _, user := range []string{"denied", "other"} {
		grant(t, s, user, rule("", []string{"configmaps", "secrets", "namespaces"}, "delete", "deletecollection"))
	}
	r.object(t, "Namespace", "", "ended", "no")
	for _, name := range []string{"a", "b", "c"} {
		r.object(t, "ConfigMap", "ended", name, "yes")
	}
	r.object(t, "Secret", "ended", "s", "yes")
	policy(t, s, "kept-maps", denial("denied", "configmaps"))

	configuration, err := clients(t, s).AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), webhooks.UncoveredName, metav1.GetOptions{})
	must(t, err)
	var deletions []string
	for _, rule := range configuration.Webhooks[0].Rules {
		if slices.Contains(rule.Operations, admissionregistrationv1.Delete) {
			deletions = append(deletions, rule.Resources...)
		}
	}
	if !slices.Equal(deletions, []string{"configmaps"}) {
		t.Errorf("rules for deletions are about %q", deletions)
	}

	const maps = "/api/v1/namespaces/ended/configmaps"
	expect(t, r.do(t, "denied", maps+"/a"), 403)
	expect(t, r.do(t, "denied", maps), 403)
	expect(t, r.do(t, "denied", "/api/v1/namespaces/ended/secrets/s", "dryRun=All"), 200)
	expect(t, r.do(t, "other", maps+"/a", "dryRun=All"), 200)
	expect(t, r.do(t, "admin", maps+"/a", "dryRun=All"), 403) // No member of system:masters, and nothing granted.
	expect(t, send(t, wire(t, s, "admin", "system:masters"), http.MethodDelete, maps+"/a", "", nil, "dryRun=All"), 200)
	expect(t, r.do(t, garbageCollector, maps+"/a"), 200)
	// The user may delete the namespace, and its controller deletes the contents.
	expect(t, r.do(t, "denied", "/api/v1/namespaces/ended"), 200)
	expect(t, r.do(t, namespaceController, maps), 200)
	expect(t, r.do(t, namespaceController, "/api/v1/namespaces/ended/secrets"), 200)
	list := send(t, wire(t, s, "admin", "system:masters"), http.MethodGet, maps, "", nil)
	if !strings.Contains(string(list.Body), `"items":[]`) {
		t.Errorf("left: %s", list.Body)
	}
}

// TestW2_W4_DeletionsWhileFieldpermIsDown: what a Deny may be about fails closed, except for members of system:masters and on the floor. All
// other deletions go on, so that namespaces without such objects are removed.
func TestW2_W4_DeletionsWhileFieldpermIsDown(t *testing.T) {
	s := startOwn(t, stack.Config{Topology: stack.REST})
	install(t, s)
	r := &remover{s}
	grant(t, s, "sweeping", rule("", []string{"pods", "services"}, "delete", "deletecollection"), rule("", []string{"pods/exec"}, "create"))
	const (
		kubelet   = "system:node:n1"
		daemons   = "system:serviceaccount:kube-system:daemon-set-controller"
		scheduler = "system:kube-scheduler"
	)
	create(t, s, map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n1"}})
	send(t, wire(t, s, "admin", "system:masters"), http.MethodPost, "/api/v1/namespaces/kube-system/serviceaccounts", "application/json", fields(t, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`))
	grant(t, s, daemons, rule("", []string{"pods"}, "delete"))
	grant(t, s, kubelet, rule("", []string{"pods"}, "delete"))
	grant(t, s, scheduler, rule("", []string{"pods"}, "delete"))
	r.object(t, "Namespace", "", "gone", "no")
	for _, name := range []string{"one", "two", "three"} {
		r.object(t, "Pod", "kube-system", name, "no")
		r.object(t, "Pod", "default", name, "no")
	}
	create(t, s, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cm", "namespace": "gone"}})
	create(t, s, map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "sweepable", "namespace": "default"}, "spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}})
	policy(t, s, "kept-pods", denial("sweeping", "pods"))
	policy(t, s, "no-shell", &v1alpha1.ConditionalPolicySpec{
		Subjects: []v1alpha1.Subject{{Kind: "User", Name: "sweeping"}}, Verbs: []string{"create"}, Effect: v1alpha1.PolicyDeny, Condition: "object.command == ['sh']",
		Resources: []v1alpha1.PolicyResource{{APIGroups: []string{""}, Resources: []string{"pods/exec"}}},
	})
	exec := func() *corpus.Answer {
		return send(t, wire(t, s, "sweeping"), http.MethodPost, "/api/v1/namespaces/default/pods/one/exec", "", nil, "command=ls")
	}
	const control, shop = "/api/v1/namespaces/kube-system/pods/", "/api/v1/namespaces/default/pods/"
	expect(t, r.do(t, "sweeping", shop+"one", "dryRun=All"), 200)
	expect(t, exec(), 400) // The Pod has no node.

	stop(t, s)
	for what, answer := range map[string]*corpus.Answer{
		"a deletion that the policy would not deny": r.do(t, "sweeping", shop+"one"),
		"a collection":                      r.do(t, "sweeping", "/api/v1/namespaces/default/pods"),
		"one by a user without a policy":    r.do(t, daemons, shop+"one"),
		"one by a node outside kube-system": r.do(t, kubelet, shop+"one"),
		"one by a user in kube-system":      r.do(t, "sweeping", control+"one"),
		"the contents of a namespace":       r.do(t, namespaceController, "/api/v1/namespaces/default/pods"),
		"garbage":                           r.do(t, garbageCollector, shop+"one"),
		"a connection":                      exec(),
	} {
		if answer.Code != 500 || !strings.Contains(answer.Status.Message, "uncovered.fieldperm.dev") {
			t.Errorf("%s: got %d, want 500: %s", what, answer.Code, answer.Body)
		}
	}
	for what, answer := range map[string]*corpus.Answer{
		"another resource":                       r.do(t, "sweeping", "/api/v1/namespaces/default/services/sweepable"),
		"a DaemonSet's Pod in kube-system":       r.do(t, daemons, control+"one", "gracePeriodSeconds=0"),
		"a node's Pod in kube-system":            r.do(t, kubelet, control+"two", "dryRun=All"),
		"garbage in kube-system":                 r.do(t, garbageCollector, control+"two", "gracePeriodSeconds=0"),
		"a preemption":                           r.do(t, scheduler, shop+"two", "gracePeriodSeconds=0"),
		"a member of system:masters":             send(t, wire(t, s, "admin", "system:masters"), http.MethodDelete, shop+"three", "", nil, "gracePeriodSeconds=0"),
		"contents of a namespace without Pods":   r.do(t, namespaceController, "/api/v1/namespaces/gone/pods"),
		"other contents of a namespace":          r.do(t, namespaceController, "/api/v1/namespaces/gone/configmaps"),
		"other contents of a namespace with one": r.do(t, namespaceController, "/api/v1/namespaces/default/configmaps", "dryRun=All"),
	} {
		if answer.Code != 200 {
			t.Errorf("%s: got %d, want 200: %s", what, answer.Code, answer.Body)
		}
	}
	must(t, s.StartWebhook(t.Context()))
	eventually(t, func() *corpus.Answer { return r.do(t, "sweeping", shop+"one", "gracePeriodSeconds=0") }, 200)
	eventually(t, exec, 404)
}
