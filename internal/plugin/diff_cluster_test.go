//go:build integration

package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// diffPlane is a control plane that fieldperm decides on.
type diffPlane struct {
	*plane
	stack *stack.Stack
}

func newDiffPlane(t *testing.T) *diffPlane {
	t.Helper()
	bin, err := e2e.Build(t.Context())
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	p := &diffPlane{&plane{t: t, cluster: s.Cluster}, s}
	p.admin, err = s.User("admin", "system:masters")
	must(t, err)
	p.kubectl("", "create", "namespace", "shop")
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

func (p *diffPlane) answer(as *cluster.User, manifest string, args ...string) *diffAnswer {
	p.t.Helper()
	out, warnings, err := p.diff(as, manifest, append([]string{"-o", "json"}, args...)...)
	if out == "" {
		p.t.Fatalf("diff %v: %v: %s", args, err, warnings)
	}
	var answer diffAnswer
	must(p.t, json.Unmarshal([]byte(out), &answer))
	return &answer
}

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: %s}]}}
`

func TestCluster_DiffTrial(t *testing.T) {
	p := newDiffPlane(t)
	alice, err := p.cluster.User("alice")
	must(t, err)
	p.kubectl(fmt.Sprintf(webDeployment, 1, "web:1"), "apply", "-f", "-")
	p.kubectl("", "create", "clusterrole", "reader", "--verb=get", "--resource=deployments.apps")
	p.kubectl("", "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=alice")
	must(t, p.stack.AwaitGrants(t.Context()))
	for _, args := range [][]string{nil, {"--server-side"}, {"--server-side", "--force-conflicts"}, {"-o", "json"}, {"-o", "html"}, {"-o", "role"}} {
		out, warnings, err := p.diff(alice, fmt.Sprintf(webDeployment, 2, "web:2"), args...)
		t.Logf("%v\n%s\n%s\n%v", args, out, warnings, err)
		out, warnings, err = p.diff(p.admin, fmt.Sprintf(webDeployment, 2, "web:2"), append([]string{"--as", "alice"}, args...)...)
		t.Logf("as alice %v\n%s\n%s\n%v", args, out, warnings, err)
	}
	out, warnings, err := p.diff(alice, strings.ReplaceAll(fmt.Sprintf(webDeployment, 2, "web:2"), "name: web, name", "name: new, name"))
	t.Logf("%s\n%s\n%v", out, warnings, err)
}
