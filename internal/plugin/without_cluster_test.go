//go:build integration

package plugin

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// TestA5_Cluster_WithoutFieldperm: what the commands say of a cluster without fieldperm. They share one control plane, because a start takes
// much processor time. The last grants the marker, which the others do not expect.
func TestA5_Cluster_WithoutFieldperm(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	admin, err := c.User("admin", "system:masters")
	must(t, err)
	t.Run("status", func(t *testing.T) {
		code, out, problems := statusOf(t, admin)
		if code != 1 || !strings.HasPrefix(out, "ENFORCEMENT: fieldperm is not installed\n") || !strings.Contains(out, installPage) || problems != "" {
			t.Errorf("exit code %d, %s%s", code, out, problems)
		}
	})
	// Nothing is wrong, and the command says that fieldperm is not there.
	t.Run("audit", func(t *testing.T) {
		code, stdout, problems := auditOf(t, admin)
		if code != 0 || !strings.Contains(problems, "does not have the kinds of fieldperm") || !strings.Contains(stdout, "0 errors, 0 warnings and 1 note") {
			t.Errorf("exit code %d, %s, %s", code, problems, stdout)
		}
	})
	t.Run("can-i", func(t *testing.T) { canIWithoutFieldperm(t, c, admin) })
}

// canIWithoutFieldperm: the marker lets nobody in.
func canIWithoutFieldperm(t *testing.T, c *cluster.Cluster, admin *cluster.User) {
	p := &plane{t: t, cluster: c, admin: admin}
	deployment, _, _ := strings.Cut(canIObjects, "\n---\n{apiVersion: apps/v1, kind: StatefulSet")
	p.kubectl(deployment, "create", "-f", "-")
	p.grant(map[string][]string{"scaler": {"granular", "granular:scale", "get", "list"}, "updater": {"update", "get", "list"}, "nobody": {"get"}})
	for _, test := range []struct {
		user, verb string
		code       int
		want       string
	}{
		{"scaler", "patch", 1, "no - holds granular, and the API server does not let the user in"},
		{"updater", "update", 0, "yes"},
		{"updater", "patch", 1, "no - needs patch or granular on deployments.apps"},
	} {
		user, err := c.User(test.user)
		must(t, err)
		if code, stdout, stderr := canI(t, user, test.verb, "deploy/web", "--field", "spec.replicas"); code != test.code || !strings.HasPrefix(stdout, test.want) {
			t.Errorf("%s %s: exit code %d, %q, %q, want %d, %q", test.user, test.verb, code, stdout, stderr, test.code, test.want)
		}
		if code, stdout, stderr := canI(t, admin, test.verb, "deploy/web", "--field", "spec.replicas", "--as", test.user, "--value", "9"); code != test.code || !strings.HasPrefix(stdout, test.want) {
			t.Errorf("%s %s, asked by the administrator: exit code %d, %q, %q, want %d, %q", test.user, test.verb, code, stdout, stderr, test.code, test.want)
		}
	}
}
