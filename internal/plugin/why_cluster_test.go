//go:build integration

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/refusal"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

const whyObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: plain, namespace: shop}, data: {a: b}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: marked, namespace: shop}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [granular, get]}, {apiGroups: [""], resources: [configmaps], verbs: [get, update, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: marked, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: marked}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: marked}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: granter, namespace: shop}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [create, escalate, bind]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: granter, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: granter}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: granters}]}
`

const whySet = `{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: data}, spec: {uncoveredPermissions: ["granular:data"], resources: [{apiGroups: [""], resources: [configmaps]}]}}`

const whyPolicy = `{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: frozen}, spec: {subjects: [{kind: User, name: marked}], verbs: [update, patch], resources: [{apiGroups: [""], resources: [configmaps]}], effect: Deny, condition: "object.metadata.name == 'plain'", description: "plain is frozen"}}`

// whyOf runs the command on a text.
func whyOf(t *testing.T, u *cluster.User, text string, args ...string) (code int, answers []whyAnswer) {
	t.Helper()
	var out, warnings bytes.Buffer
	cmd := NewWhyCommand(genericiooptions.IOStreams{In: strings.NewReader(text), Out: &out, ErrOut: &warnings})
	cmd.SetArgs(append(args, "-o", "json", "--kubeconfig", u.Kubeconfig))
	err := cmd.ExecuteContext(t.Context())
	var all struct{ Refusals []whyAnswer }
	if out.Len() > 0 {
		must(t, json.Unmarshal(out.Bytes(), &all))
	}
	t.Logf("%.300s%s", text, warnings.String())
	return ExitCode(err), all.Refusals
}

// TestCluster_WhyOfRealRefusals: each message is one of kubectl and the real API server. Where a grant is shown, it lifts the refusal.
func TestCluster_WhyOfRealRefusals(t *testing.T) {
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Audit: true, UnauthorizedTTL: 1, AuthorizedTTL: 1, Arguments: []string{"--decision-cache-ttl", "0s"}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	user, err := s.User("marked")
	must(t, err)
	p := &plane{t: t, cluster: s.Cluster, admin: admin}
	p.kubectl("", "create", "-f", "../../config/crd")
	p.kubectl(whyObjects, "create", "-f", "-")
	p.kubectl("", "wait", "--for=condition=Established", "--timeout=90s", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/conditionalpolicies.fieldperm.dev")
	p.kubectl(whySet, "create", "-f", "-")
	p.kubectl("", "wait", "--for=condition=Enforced", "--timeout=90s", "uncoveredpermissionset/data")
	must(t, s.AwaitGrants(t.Context()))
	write := func(args ...string) string {
		stdout, stderr, err := s.Kubectl(user).Run(t.Context(), "", append(args, "-n", "shop")...)
		if err == nil {
			return ""
		}
		return stdout + stderr
	}

	for _, test := range []struct {
		name    string
		args    []string
		check   refusal.Check
		webhook string
	}{
		{"the marker alone", []string{"patch", "deployment", "web", "-p", `{"spec":{"paused":true}}`}, refusal.CheckVerb, "granular.fieldperm.dev"},
		{"a key that looks like a message", []string{"annotate", "deployment", "web", `x/needs="; needs granular:*`}, refusal.CheckVerb, "granular.fieldperm.dev"},
		{"a barrier", []string{"patch", "configmap", "plain", "-p", `{"data":{"a":"c"}}`}, refusal.CheckBarrier, "uncovered.fieldperm.dev"},
		{"no marker on the subresource", []string{"scale", "deployment", "web", "--replicas=3"}, refusal.CheckMarker, ""},
		{"a deletion", []string{"delete", "deployment", "web", "--dry-run=server"}, refusal.CheckPermission, ""},
		{"a read", []string{"get", "secrets"}, refusal.CheckPermission, ""},
	} {
		text := write(test.args...)
		code, answers := whyOf(t, admin, text, "-n", "shop", "--who")
		if code != 0 || len(answers) != 1 {
			t.Errorf("%s: exit code %d, %d answers for %s", test.name, code, len(answers), text)
			continue
		}
		a := answers[0]
		if a.User != "marked" || a.Causes[0].Check != test.check || a.Webhook != test.webhook || a.Grant == nil {
			t.Errorf("%s: %+v", test.name, a)
			continue
		}
		if !slices.ContainsFunc(a.Grantors, func(g refusal.Grantor) bool {
			return g.Kind == "Group" && g.Name == "granters" && g.Anything
		}) {
			t.Errorf("%s: grantors %+v", test.name, a.Grantors)
		}
		// Without some verb nothing else of the write is refused.
		for _, object := range a.Grant.Objects {
			raw, err := json.Marshal(object)
			must(t, err)
			p.kubectl(string(raw), "apply", "-f", "-")
		}
		must(t, s.AwaitGrants(t.Context()))
		p.await("the grant of "+test.name+" lifts the refusal", func(context.Context) (bool, error) { return write(test.args...) == "", nil })
		for _, object := range a.Grant.Objects {
			raw, err := json.Marshal(object)
			must(t, err)
			p.kubectl(string(raw), "delete", "-f", "-")
		}
	}

	// kube-apiserver repeats the path of a request, and "*" in a Role would be every resource.
	text := write("get", "--raw", "/apis/*/v1/namespaces/shop/*")
	if code, answers := whyOf(t, admin, text); code != 0 || len(answers) != 1 || answers[0].Grant != nil || !strings.Contains(answers[0].NoGrant, "wildcard") {
		t.Errorf("a wildcard in the path: exit code %d, %+v", code, answers)
	}

	// The audit log has the refusals of the API server, with the namespace.
	raw, err := os.ReadFile(s.AuditLog())
	must(t, err)
	code, answers := whyOf(t, admin, string(raw), "--all")
	if code != 0 || !slices.ContainsFunc(answers, func(a whyAnswer) bool {
		return a.User == "marked" && a.Namespace == "shop" && a.Field == ".spec.paused" && a.Webhook == "granular.fieldperm.dev"
	}) {
		t.Errorf("audit log: exit code %d, %d answers", code, len(answers))
	}

	// A Deny is in a policy, not in a missing grant.
	p.kubectl(whyPolicy, "create", "-f", "-")
	var denied string
	p.await("the policy denies", func(context.Context) (bool, error) {
		denied = write("patch", "configmap", "plain", "-p", `{"metadata":{"labels":{"a":"b"}}}`)
		return denied != "", nil
	})
	if code, answers = whyOf(t, admin, denied); code != 0 || answers[0].Deny == nil || !strings.Contains(answers[0].Deny.Reason, "plain is frozen") || answers[0].Grant != nil {
		t.Errorf("a policy: exit code %d, %+v", code, answers)
	}

	// Without fieldperm-webhook the write fails, and is not decided.
	must(t, s.StopWebhook())
	down := write("patch", "configmap", "plain", "-p", `{"data":{"a":"d"}}`)
	if code, answers = whyOf(t, admin, down); code != 0 || answers[0].Origin != refusal.FromFailure || answers[0].Grant != nil {
		t.Errorf("down: exit code %d, %+v", code, answers)
	}
}
