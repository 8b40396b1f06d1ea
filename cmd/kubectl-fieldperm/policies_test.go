package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// policyFile writes a ConditionalPolicy about Deployments.
func policyFile(t *testing.T, subject, verbs, effect, condition string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	text := "{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: bounds}, spec: {subjects: [" + subject + "], verbs: [" + verbs + "],\n" +
		"  resources: [{apiGroups: [apps], resources: [deployments]}], effect: " + effect + ", condition: '" + condition + "', description: up to 10 replicas}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestK5_ReviewDecidesByPoliciesOfFiles: with the grants, as the server does with those of the cluster.
func TestK5_ReviewDecidesByPoliciesOfFiles(t *testing.T) {
	t.Chdir("testdata")
	const nobody, alice = "{kind: User, name: nobody}", "{kind: User, name: alice}"
	for name, c := range map[string]struct {
		subject, as, verbs, effect, condition string
		code                                  int
		want                                  string
	}{
		"an Allow that holds":      {nobody, "nobody", "update, patch", "Allow", "object.spec.replicas <= 10", 0, "allowed (mode generic"},
		"an Allow that does not":   {nobody, "nobody", "update, patch", "Allow", "object.spec.replicas > 10", 1, `the condition of policy "bounds" is not met: "up to 10 replicas"`},
		"granular verbs":           {nobody, "nobody", `granular, "granular:scale"`, "Allow", "object.spec.replicas <= 10", 0, "allowed (mode granular"},
		"a Deny":                   {alice, "alice", "update, patch", "Deny", "object.spec.replicas <= 10", 1, `authorizer "ConditionalPolicy" denies update`},
		"a Deny of others":         {nobody, "alice", "update, patch", "Deny", "true", 0, "allowed (mode granular"},
		"a condition that fails":   {alice, "alice", "update, patch", "Deny", "object.spec.nothing == 1", 1, "denies update"},
		"a condition on the grant": {alice, "alice", `"granular:scale"`, "Deny", "object.spec.replicas > 1", 1, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := execute(t, "", "review", "--old", "deployment.yaml", "--new", "scaled.yaml", "--as", c.as, "--grants", "grants.yaml", "--policies", policyFile(t, c.subject, c.verbs, c.effect, c.condition))
			if code != c.code || !strings.Contains(strings.Join(strings.Fields(stdout), " "), c.want) || !strings.Contains(stderr, "is not checked against types") {
				t.Errorf("exit code %d, want %d with %q\n%s%s", code, c.code, c.want, stdout, stderr)
			}
		})
	}
}

func TestReviewRefusesWhatIsNoPolicy(t *testing.T) {
	t.Chdir("testdata")
	for args, want := range map[string]string{
		"--policies grants.yaml": `kind "ClusterRole" of "rbac.authorization.k8s.io/v1" is not accepted`,
		"--policies none":        "give a file or a directory",
		"--policies " + policyFile(t, "{kind: User, name: alice}", "update", "Deny", "true"): "name both or none",
		"--authorization-config x":                                      "--authorization-config needs a cluster",
		"--permissions uncovered.yaml --authorization-config x -o json": "drop one of the two",
	} {
		code, stdout, stderr := execute(t, "", append(strings.Fields("review -f review.json --grants grants.yaml"), strings.Fields(args)...)...)
		refused(t, code, stdout, stderr, want)
	}
}

// TestK5_TightenListsPoliciesOfFiles: and says if it knows none.
func TestK5_TightenListsPoliciesOfFiles(t *testing.T) {
	t.Chdir("testdata/tighten")
	const me = "{kind: ServiceAccount, namespace: ops, name: operator}"
	allow, deny := policyFile(t, me, "update, patch", "Allow", "true"), policyFile(t, me, `"granular:scale"`, "Deny", "object.spec.replicas > 10")
	const loss, unknown = `ConditionalPolicy "bounds" may deny granular:scale on deployments.apps`, "ConditionalPolicies were not looked at"
	for _, c := range []struct {
		args       string
		code       int
		want, lack string
	}{
		{"", 0, unknown, "that also decide"},
		{"--policies " + allow, 0, "ConditionalPolicies that also decide, and are left as they are:\n- ConditionalPolicy \"bounds\", with Allow on update, patch of deployments.apps", unknown},
		{"--policies " + deny, 1, "Lost besides update and patch; --allow-loss accepts it:\n- " + loss, "that also decide"},
		{"--allow-loss --policies " + deny, 0, loss, unknown},
		{"--simulate audit.log --policies " + deny, 1, "cannot be judged: a right besides update and patch is lost: " + loss, "would be refused: it needs"},
	} {
		code, stdout, stderr := execute(t, "", append([]string{"tighten", operator, "--grants", "rbac.yaml", "--audit-log", "audit.log"}, strings.Fields(c.args)...)...)
		if text := stdout + stderr; code != c.code || !strings.Contains(text, c.want) || strings.Contains(text, c.lack) {
			t.Errorf("%q: exit code %d, want %d with %q\n%s", c.args, code, c.code, c.want, text)
		}
	}
}
