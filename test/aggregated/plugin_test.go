//go:build integration

package aggregated

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin runs kubectl-fieldperm as an administrator, and returns its output and exit code.
func (p *plane) plugin(t *testing.T, args ...string) (string, int) {
	t.Helper()
	admin, err := p.User("admin", "system:masters")
	must(t, err)
	cmd := exec.CommandContext(t.Context(), filepath.Join(p.bin, "kubectl-fieldperm"), append(args, "--kubeconfig", admin.Kubeconfig)...) //nolint:gosec // Our own binary.
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		must(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// asked: explain and review read the same document of the server as fieldperm-webhook.
func asked(t *testing.T, p *plane) {
	p.grant(t, "asked", []string{"kegs"}, "granular", "granular:brewery.example.com/beer")
	out, code := p.plugin(t, "explain", "kegs.brewery.example.com.spec")
	for _, want := range []string{"brewery.example.com/beer", "brewery.example.com/recall", "brewery.example.com/prices", "granular:scale"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("explain ended with %d and has no %q", code, want)
		}
	}
	if strings.Contains(out, "may change fields that it does not show") {
		t.Errorf("explain says that equal versions differ: %s", out)
	}
	out, code = p.plugin(t, "explain", "recipes.brewery.example.com.spec.secret")
	if code != 0 || !strings.Contains(out, "RESOURCE:   recipes") || !strings.Contains(out, "brewery.example.com/secret") {
		t.Errorf("explain ended with %d: %s", code, out)
	}

	before := decode(t, []byte(p.kubectl(t, "", "get", "kegs", "one", "-o", "json")))
	review := func(field string, value any) (string, int) {
		after := decode(t, []byte(encode(t, before)))
		after["spec"].(map[string]any)[field] = value
		dir := t.TempDir()
		for name, object := range map[string]any{"old.yaml": before, "new.yaml": after} {
			raw, err := yaml.Marshal(object)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
		}
		return p.plugin(t, "review", "--old", filepath.Join(dir, "old.yaml"), "--new", filepath.Join(dir, "new.yaml"), "--as", "asked")
	}
	if out, code := review("beer", "stout"); code != 0 || !strings.Contains(out, "granular:brewery.example.com/beer") {
		t.Errorf("review ended with %d: %s", code, out)
	}
	if out, code := review("recalled", true); code != 1 || !strings.Contains(out, "may not change .spec.recalled") {
		t.Errorf("review ended with %d: %s", code, out)
	}
}
