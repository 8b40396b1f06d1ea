//go:build integration

package plugin

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// diffPlane is a control plane that fieldperm decides on. Its users may read what a permission schema is made of.
type diffPlane struct {
	*plane
	stack *stack.Stack
}

const schemaReaders = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reads-schemas}, rules: [
  {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list]},
  {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [list]},
  {apiGroups: [fieldperm.dev], resources: [permissionschemas, uncoveredpermissionsets, conditionalpolicies], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reads-schemas}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-schemas},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}]}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
`

func newDiffPlane(t *testing.T) *diffPlane {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	// Grants and what takes their place are asked about one after the other, so that no decision may be kept.
	s, err := stack.Start(t.Context(), stack.Config{
		Bin: bin, AuthorizedTTL: time.Millisecond, UnauthorizedTTL: time.Millisecond, Arguments: []string{"--decision-cache-ttl=1ms"},
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	p := &diffPlane{&plane{t: t, cluster: s.Cluster}, s}
	p.admin, err = s.User("admin", "system:masters")
	must(t, err)
	p.kubectl(schemaReaders, "create", "-f", "-")
	must(t, s.AwaitGrants(t.Context()))
	return p
}

// diff runs the command as a user.
func (p *diffPlane) diff(as *cluster.User, manifest string, args ...string) (out, warnings string, err error) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := NewDiffCommand(genericiooptions.IOStreams{In: strings.NewReader(manifest), Out: &stdout, ErrOut: &stderr})
	cmd.SetArgs(append([]string{"-f", "-", "--kubeconfig", as.Kubeconfig}, args...))
	err = cmd.ExecuteContext(p.t.Context())
	return stdout.String(), stderr.String(), err
}

// answer returns the only object of an answer.
func (p *diffPlane) answer(as *cluster.User, manifest string, args ...string) *diffAnswer {
	p.t.Helper()
	out, warnings, err := p.diff(as, manifest, append([]string{"-o", "json"}, args...)...)
	var answer diffAnswer
	if json.Unmarshal([]byte(out), &answer) != nil || len(answer.Objects) != 1 {
		p.t.Fatalf("diff %q of %s: %v: %s%s", args, manifest, err, out, warnings)
	}
	return &answer
}

// apply applies a manifest as a user, and reports whether that was allowed.
func (p *diffPlane) apply(as *cluster.User, manifest string, args ...string) (allowed bool, why string) {
	p.t.Helper()
	_, stderr, err := p.cluster.Kubectl(as).Run(p.t.Context(), manifest, append([]string{"apply", "-f", "-"}, args...)...)
	if err != nil && !strings.Contains(stderr, "orbidden") && !strings.Contains(stderr, "denied the request") {
		p.t.Fatalf("apply %q of %s: %v: %s", args, manifest, err, stderr)
	}
	return err == nil, stderr
}
