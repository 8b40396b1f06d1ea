//go:build integration

package plugin

import (
	"context"
	"strings"
	"testing"
)

// stamping changes a label in each write of a ConfigMap, as a mutating webhook does. It leaves the probes of fieldperm-webhook alone.
const stamping = `
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: stamp}, spec: {
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}, failurePolicy: Fail, reinvocationPolicy: Never,
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"stamp": object.data.a}}}'}}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: stamp}, spec: {policyName: stamp}}
`

// TestCluster_DiffShowsWhatOnlyTheAPIServerSees: a user with the marker may not make any change, so that the API server returns no result. The
// denial names the change of a mutating policy, and the role is enough.
func TestCluster_DiffShowsWhatOnlyTheAPIServerSees(t *testing.T) {
	p := newDiffPlane(t)
	alice, err := p.cluster.User("alice")
	must(t, err)
	p.kubectl(stamping, "create", "-f", "-")
	const manifest = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: %}}`
	p.await("the policy is in force", func(context.Context) (bool, error) {
		p.kubectl(strings.Replace(manifest, "%", "one", 1), "apply", "-f", "-")
		labels := p.kubectl("", "get", "configmap", "c", "-n", "shop", "-o", "jsonpath={.metadata.labels}")
		if labels == "" {
			p.kubectl("", "delete", "configmap", "c", "-n", "shop")
		}
		return labels != "", nil
	})
	p.kubectl("", "create", "role", "marked", "-n", "shop", "--verb=get,granular", "--resource=configmaps")
	p.kubectl("", "create", "rolebinding", "marked", "-n", "shop", "--role=marked", "--user=alice")
	must(t, p.stack.AwaitGrants(t.Context()))

	changed := strings.Replace(manifest, "%", "two", 1)
	for _, args := range [][]string{{}, {"--server-side", "--force-conflicts"}} {
		answer := p.answer(alice, changed, args...)
		object := &answer.Objects[0]
		found := false
		for _, c := range object.Changes {
			found = found || c.Operation == onlyAPIServer && c.Path == `.metadata.labels["stamp"]`
		}
		if object.Allowed || object.Result != "computed" || !found {
			t.Errorf("%q: the label of the policy is no change of the answer: %s", args, indented(answer))
		}
		if allowed, _ := p.apply(alice, changed, args...); allowed {
			t.Errorf("%q: is allowed without the verbs", args)
		}
		p.create(answer.Roles)
		if allowed, why := p.apply(alice, changed, args...); !allowed {
			t.Errorf("%q: the role is not enough: %s\n%s", args, why, indented(answer))
		}
		p.kubectl("", "delete", "role,rolebinding", "-n", "shop", "--field-selector", "metadata.name!=marked")
		p.kubectl(strings.Replace(manifest, "%", "one", 1), "apply", "-f", "-")
		must(t, p.stack.AwaitGrants(t.Context()))
	}
}
