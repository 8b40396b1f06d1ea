package generate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/finding/findingtest"
	"github.com/fieldperm/fieldperm/internal/lint"
)

// misspelt has one finding that --fix corrects, and a warning.
var misspelt = strings.NewReplacer("verb: example.com/size", "verb: example.com/Body-size", "excluded: true}", "excluded: true} # how large").Replace(widgets)

func TestLint_ExitCodes(t *testing.T) {
	dir := t.TempDir()
	good, bad := save(t, dir, "good.yaml", widgets), save(t, dir, "bad.yaml", misspelt)
	warns := save(t, dir, "warns.yaml", strings.ReplaceAll(widgets, "example.com/size", "frobnication"))
	registry := save(t, dir, "registry.yml", "apiVersion: fieldperm.dev/v1alpha1\nkind: VerbRegistry\nverbs:\n- {verb: frobnication, meaning: m, owner: o}\n")
	roles := save(t, dir, "roles.yml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a, namespace: b}\nrules: []\n")
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"good":                {[]string{good}, 0, "0 errors, 0 warnings and 0 notes in 1 object.\n", ""},
		"error":               {[]string{bad}, 1, `bad.yaml:17:63: error: CustomResourceDefinition mice.example.com: v1 .size: verb "example.com/Body-size" is not lowerCamelCase: use "example.com/bodySize" [verb-spelling]`, ""},
		"warning":             {[]string{warns}, 0, "1 warning", ""},
		"warning counts":      {[]string{warns, "--fail-on", "warning"}, 1, "[verb-not-registered]", ""},
		"registered":          {[]string{warns, "--fail-on", "note", "--registry", registry}, 0, "0 warnings", ""},
		"disabled":            {[]string{warns, "--fail-on", "note", "--disable", "verb-not-registered"}, 0, "0 warnings", ""},
		"no role":             {[]string{good, "--fail-on", "warning", "--roles", roles}, 1, "[barrier-without-holder]", ""},
		"roles among files":   {[]string{good, roles, "--fail-on", "warning"}, 1, "[barrier-without-holder]", ""},
		"a file twice":        {[]string{bad, bad}, 1, "1 error", ""},
		"no file":             {nil, 2, "", "error: FILES are missing: "},
		"missing file":        {[]string{filepath.Join(dir, "none")}, 2, "", "cannot be read"},
		"empty directory":     {[]string{empty}, 2, "", "has no *.yaml"},
		"missing registry":    {[]string{good, "--registry", filepath.Join(dir, "none")}, 2, "", "error: --registry: "},
		"registry of no kind": {[]string{good, "--registry", good}, 2, "", good + ":1:13: "},
		"roles of no kind":    {[]string{good, "--roles", empty}, 2, "", "error: --roles: "},
		"flag":                {[]string{good, "--colour"}, 2, "", `see "fieldperm-gen lint --help"`},
		"output":              {[]string{good, "-o", "xml"}, 2, "", `--output "xml" is no output: use text, json, sarif`},
		"level":               {[]string{good, "--fail-on", "fatal"}, 2, "", `--fail-on "fatal" is no level: use error, warning or note`},
		"rule":                {[]string{good, "--disable", "verb-speling"}, 2, "", `use "verb-spelling"`},
		"another kind":        {[]string{save(t, dir, "pod.yml", "apiVersion: v1\nkind: Pod\n")}, 2, "", `kind "Pod"`},
	} {
		code, stdout, stderr := run(t, "", append([]string{"lint"}, test.args...)...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || test.stderr == "" && stderr != "" || test.stdout == "" && stdout != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", name, code, stdout, stderr)
		}
	}
}

func TestLint_Outputs(t *testing.T) {
	bad := save(t, t.TempDir(), "bad.yaml", misspelt)
	code, stdout, _ := run(t, "", "lint", bad, "-o", "json")
	var answer struct {
		Findings []map[string]any `json:"findings"`
		Summary  map[string]int   `json:"summary"`
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != 1 || len(answer.Findings) != 1 || answer.Summary["errors"] != 1 || answer.Summary["objects"] != 1 {
		t.Fatalf("exit %d, %v, %s", code, err, stdout)
	}
	for key, want := range map[string]any{"rule": "verb-spelling", "level": "error", "file": bad, "line": 17.0, "column": 63.0, "fix": `write "example.com/bodySize" in place of "example.com/Body-size"`} {
		if got := answer.Findings[0][key]; got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	if code, stdout, _ := run(t, widgets, "lint", save(t, t.TempDir(), "good.yaml", widgets), "-o", "json"); code != 0 || !strings.Contains(stdout, `"findings": []`) {
		t.Errorf("exit %d, %s", code, stdout)
	}
	code, stdout, _ = run(t, "", "lint", bad, "-o", "sarif")
	if log := findingtest.ReadSARIF(t, []byte(stdout), lint.Rules()); code != 1 || len(log.Runs[0].Results) != 1 {
		t.Errorf("exit %d, %s", code, stdout)
	}
}

// --fix changes the file in place, keeps everything else, and does nothing the second time.
func TestLint_Fix(t *testing.T) {
	dir := t.TempDir()
	bad := save(t, dir, "bad.yaml", misspelt)
	code, stdout, stderr := run(t, "", "lint", bad, "--fix")
	if code != 0 || !strings.Contains(stderr, `fixed: `+bad+`:17: write "example.com/bodySize" in place of "example.com/Body-size" [verb-spelling]`) || !strings.Contains(stdout, "0 errors") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	want := strings.ReplaceAll(misspelt, "example.com/Body-size", "example.com/bodySize")
	if got := content(t, bad); got != want {
		t.Errorf("the file is now\n%s", got)
	}
	if code, _, stderr := run(t, "", "lint", bad, "--fix"); code != 0 || stderr != "" || content(t, bad) != want {
		t.Errorf("the second time: exit %d, %q", code, stderr)
	}
}

// G3: crd warns about a verb that is nobody's, and refuses one of a reserved domain.
func TestG3_CRDChecksWhoseVerbItIs(t *testing.T) {
	dir := t.TempDir()
	registry := save(t, dir, "registry.yaml", "apiVersion: fieldperm.dev/v1alpha1\nkind: VerbRegistry\nverbs:\n- {verb: frobnication, meaning: m, owner: o}\n- {verb: kubernetes.io/foo, meaning: m, owner: o}\n")
	for name, test := range map[string]struct {
		verb           string
		args           []string
		code           int
		stdout, stderr string
	}{
		"own domain":           {"example.com/size", nil, 0, "permission-verbs", ""},
		"well known":           {"scale", nil, 0, "permission-verbs", ""},
		"no domain":            {"frobnication", nil, 0, "permission-verbs", `warning: stdin:17:63: verb "frobnication" has no domain and is no well-known verb: give it a domain that you own, such as "example.com/frobnication", or list it in a registry [verb-not-registered]`},
		"registered":           {"frobnication", []string{"--registry", registry}, 0, "permission-verbs", ""},
		"reserved":             {"kubernetes.io/foo", nil, 1, "", `error: stdin:17:63: verb "kubernetes.io/foo": domain "kubernetes.io" is reserved: use a domain that you own, such as "example.com/foo" [reserved-domain]`},
		"reserved, registered": {"kubernetes.io/foo", []string{"--registry", registry}, 0, "permission-verbs", ""},
		"another's":            {"example.org/foo", nil, 0, "permission-verbs", `warning: stdin:17:63: verb "example.org/foo": domain "example.org" is not of the API group "example.com"`},
		"no registry":          {"example.com/size", []string{"--registry", filepath.Join(dir, "none")}, 1, "", "error: --registry: "},
	} {
		code, stdout, stderr := run(t, strings.ReplaceAll(widgets, "example.com/size", test.verb), append([]string{"crd", "--in=-"}, test.args...)...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || test.stderr == "" && stderr != "" || test.stdout == "" && stdout != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", name, code, stdout, stderr)
		}
	}
}

// docs/guide/lint.md shows what the command prints about testdata/lint/gadgets.yaml, before and after --fix.
func TestLint_ThePageShowsRealOutputs(t *testing.T) {
	page := content(t, "..", "..", "docs", "guide", "lint.md")
	gadgets := content(t, "testdata", "lint", "gadgets.yaml")
	dir := t.TempDir()
	save(t, dir, "gadgets.yaml", gadgets)
	t.Chdir(dir)
	for _, args := range [][]string{{"lint", "gadgets.yaml"}, {"lint", "gadgets.yaml", "--fix"}} {
		_, stdout, stderr := run(t, "", args...)
		if want := "```console\n$ fieldperm-gen " + strings.Join(args, " ") + "\n" + stderr + stdout + "```"; !strings.Contains(page, want) {
			t.Errorf("docs/guide/lint.md lacks\n%s", want)
		}
	}
}
