package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "rewrite testdata/golden; commit only if you understand every change")

// execute runs the command line in this process, without any cluster.
func execute(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	code = run(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut})
	return code, out.String(), errOut.String()
}

// goldenCases are the reviews whose complete output is in testdata/golden/NAME.FORMAT. Spaces separate words.
var goldenCases = []struct {
	name, args string
	code       int
}{
	{"C1_granular_verb_covers", "--old deployment.yaml --new scaled.yaml --as alice", 0},
	{"C1_generic_verb_covers", "--old deployment.yaml --new scaled-and-image.yaml --as bob", 0},
	{"C1_generic_verb_by_group", "--old deployment.yaml --new scaled-and-image.yaml --as eva --as-group others --as-group editors", 0},
	{"C1_marker_alone_grants_nothing", "--old deployment.yaml --new scaled.yaml --as mark", 1},
	{"C1_neither_generic_nor_marker", "--old deployment.yaml --new scaled.yaml --as nobody", 1},
	{"C2_barrier_for_generic_holder", "--old namespace.yaml --new namespace-privileged.yaml --as olga --permissions uncovered.yaml", 1},
	{"C2_beside_the_barrier", "--old namespace.yaml --new namespace-team.yaml --as olga --permissions uncovered.yaml", 0},
	{"C2_excluded_when_of_a_CRD", "--old widget.yaml --new widget-privileged.yaml --as bob --crd widget-crd.yaml", 1},
	{"C4_delete_needs_delete", "--old deployment.yaml --as alice", 1},
	{"C4_delete_by_generic_verb", "--old deployment.yaml --as bob", 0},
	{"C5_create", "--new deployment.yaml --as bob", 0},
	{"D8_ownership_not_judged", "--old bare.yaml --new bare-changed.yaml --as bob", 0},
	{"D10_no_change", "--old deployment.yaml --new deployment.yaml --as alice", 0},
	{"D11_subresource", "--old status.yaml --new status-changed.yaml --as alice --subresource status", 1},
	{"P1_stops_at_first_uncovered", "--old deployment.yaml --new scaled-and-image.yaml --as alice", 1},
	{"P3_too_many_checks", "--old deployment.yaml --new scaled.yaml --as alice --max-checks 4", 1},
	{"custom_resource_by_plural_and_aggregation", "--old widget.yaml --new widget-bigger.yaml --as system:serviceaccount:ops:operator --crd widget-crd.yaml", 0},
	{"resource_as_given", "--old deployment.yaml --new scaled.yaml --as alice --resource extensions/v1beta1/deployments", 1},
	{"admission_review", "-f review.json", 0},
}

func TestReviewGolden(t *testing.T) {
	t.Chdir("testdata")
	goldens := map[string]bool{}
	for _, test := range goldenCases {
		for _, format := range []string{"json", "table", "yaml"} {
			if format == "yaml" && test.name != "C1_granular_verb_covers" {
				continue // the same report
			}
			file := filepath.Join("golden", test.name+"."+format)
			goldens[file] = true
			t.Run(test.name+"/"+format, func(t *testing.T) {
				args := append([]string{"review", "--grants", "grants.yaml", "-o", format}, strings.Fields(test.args)...)
				code, stdout, stderr := execute(t, "", args...)
				if code != test.code || stderr != "" {
					t.Errorf("got exit code %d, want %d; stderr %q", code, test.code, stderr)
				}
				golden(t, file, stdout)
			})
		}
	}
	onlyGoldens(t, goldens)
}

// onlyGoldens fails for files of the directory golden that no case has.
func onlyGoldens(t *testing.T, of map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !of[file] {
			t.Errorf("%s belongs to no case: delete it", file)
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

func TestReviewReadsStandardInput(t *testing.T) {
	t.Chdir("testdata")
	review, err := os.ReadFile("review.json")
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := execute(t, string(review), "review", "-f", "-", "--grants", "grants.yaml"); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestReviewHintsAtTheNamespace(t *testing.T) {
	t.Chdir("testdata")
	files := map[string]string{}
	for _, name := range []string{"deployment.yaml", "scaled.yaml"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(files[name], bytes.ReplaceAll(raw, []byte("  namespace: shop\n"), nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"review", "--old", files["deployment.yaml"], "--new", files["scaled.yaml"], "--as", "alice", "--grants", "grants.yaml"}
	if code, _, stderr := execute(t, "", args...); code != 1 || !strings.Contains(stderr, "warning: the object names no namespace") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	if code, _, stderr := execute(t, "", append(args, "--namespace", "shop")...); code != 0 || stderr != "" {
		t.Errorf("with --namespace: exit code %d, stderr %q", code, stderr)
	}
}

func TestReviewWarnsOfMissingRoles(t *testing.T) {
	t.Chdir("testdata")
	grants := filepath.Join(t.TempDir(), "grants.yaml")
	if err := os.WriteFile(grants, []byte("{kind: ClusterRoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: b}, roleRef: {kind: ClusterRole, name: edit}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := execute(t, "", "review", "-f", "review.json", "--grants", grants)
	if code != 1 || !strings.Contains(stderr, `warning: ClusterRoleBinding "b": ClusterRole "edit" is not among the grants`) {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "review --help"} {
		code, stdout, _ := execute(t, "", strings.Fields(args)...)
		if code != 0 || !strings.Contains(stdout, "kubectl fieldperm") {
			t.Errorf("%s: exit code %d, stdout %q", args, code, stdout)
		}
	}
	_, stdout, _ := execute(t, "", "review", "--help")
	if n := strings.Count(stdout, "\n  kubectl fieldperm review -"); n < 2 {
		t.Errorf("the help of review has %d examples, want at least 2", n)
	}
}

func TestCancelledContextIsNoDenial(t *testing.T) {
	t.Chdir("testdata")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	code := run(ctx, strings.Fields("review -f review.json --server https://127.0.0.1:1"), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}})
	if code != 2 || out.Len() > 0 {
		t.Errorf("exit code %d, stdout %q", code, out.String())
	}
}
