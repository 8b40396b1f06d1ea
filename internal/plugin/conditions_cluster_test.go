//go:build integration

package plugin

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestK8_Cluster_Conditions lists the conditions of users on a real cluster.
func TestK8_Cluster_Conditions(t *testing.T) {
	p := newPlane(t)
	const policies = `
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: bounds}, spec: {subjects: [{kind: User, name: scaler}], verbs: ["granular:scale"],
  resources: [{apiGroups: [apps], resources: [deployments, deployments/scale]}], effect: Allow, condition: 'request.namespace == "shop" && object.spec.replicas <= 10', description: up to 10}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: a-freeze}, spec: {subjects: [{kind: Group, name: 'system:authenticated'}], verbs: ["granular:scale", update, patch],
  resources: [{apiGroups: [apps], resources: ['*']}], effect: Deny, condition: 'oldObject.metadata.labels["frozen"] == "true"'}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: mine}, spec: {subjects: [{kind: User, name: asker}], verbs: [create],
  resources: [{apiGroups: [""], resources: [configmaps]}], effect: Allow, condition: 'request.userInfo.username == "asker"'}}
`
	p.kubectl(policies, "create", "-f", "-")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"granular:scale deployments/web -n shop --as scaler", 0, `EFFECT POLICY CONDITION DESCRIPTION Deny a-freeze oldObject.metadata.labels["frozen"] == "true" - Allow bounds object.spec.replicas <= 10 up to 10`},
		{"granular:scale deployments.apps/web --subresource scale -n shop --as scaler -o yaml", 0, `- authorizer: ConditionalPolicy condition: object.spec.replicas <= 10 description: up to 10 effect: Allow policy: bounds`},
		{"granular:scale deploy -n dev --as scaler", 0, `Allow bounds false up to 10`},
		{"granular:scale deployments.v1.apps -n dev --as bob", 0, `Deny a-freeze oldObject.metadata.labels["frozen"] == "true"`},
		{"create configmaps", 0, `Allow mine true`},
		{"create configmaps --as bob -o json", 0, `{ "conditions": [] }`},
		{"delete nodes/n --as bob", 0, `No policy is about it.`},
		{"update nonsense --as bob", 2, `resource "nonsense"`},
		{"update pods --as-group x", 2, `without --as`},
		{"update pods -o x", 2, `--output "x" is not known`},
	} {
		if code, text := p.conditions(strings.Fields(c.args)...); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.args, code, text, c.code, c.want)
		}
	}
}

// conditions runs the conditions command. It returns its output in one line, or its error.
func (p *plane) conditions(args ...string) (int, string) {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := NewConditionsCommand(genericiooptions.IOStreams{Out: &out, ErrOut: &errs})
	cmd.SetArgs(append(args, "--kubeconfig", p.asker.Kubeconfig))
	err := cmd.ExecuteContext(context.WithoutCancel(p.t.Context()))
	if err != nil {
		return ExitCode(err), err.Error()
	}
	return 0, strings.Join(strings.Fields(out.String()), " ")
}
