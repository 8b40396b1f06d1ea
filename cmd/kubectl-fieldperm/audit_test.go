package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const auditFiles = "--grants audit/rbac.yaml --crd audit/gadgets.yaml --permissions audit/documents.yaml"

// auditCases are the answers of audit that are in testdata/audit/golden/NAME.FORMAT.
var auditCases = []struct {
	name, args, formats string
	code                int
}{
	{"faults", auditFiles, "text json yaml sarif html", 1},
	{"clean", "--grants audit/clean.yaml", "text json sarif", 0},
	{"one_namespace", auditFiles + " -n other", "text", 0},
}

func TestAuditGolden(t *testing.T) {
	t.Chdir("testdata")
	goldens := map[string]bool{}
	for _, test := range auditCases {
		for format := range strings.FieldsSeq(test.formats) {
			file := filepath.Join("audit", "golden", test.name+"."+format)
			goldens[file] = true
			t.Run(test.name+"/"+format, func(t *testing.T) {
				code, stdout, stderr := execute(t, "", append([]string{"audit", "-o", format}, strings.Fields(test.args)...)...)
				if code != test.code || stderr != "" {
					t.Errorf("exit code %d, stderr %q", code, stderr)
				}
				if format == "html" {
					// The rows of the table. internal/page tests what is around them.
					stdout = cells(stdout)
				}
				golden(t, file, stdout)
			})
		}
	}
	files, err := filepath.Glob("audit/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !goldens[file] {
			t.Errorf("%s belongs to no case: delete it", file)
		}
	}
}

// The level of --fail-on and the findings make the exit code.
func TestAuditFailsOnTheLevel(t *testing.T) {
	t.Chdir("testdata")
	const warning = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{apiGroups: [""], resources: [pods], resourceNames: [x], verbs: [create]}]}`
	for level, want := range map[string]int{"error": 0, "warning": 1, "note": 1} {
		if code, stdout, _ := execute(t, warning, "audit", "--grants", "-", "--fail-on", level); code != want || !strings.Contains(stdout, "0 errors, 1 warning and 0 notes") {
			t.Errorf("--fail-on %s: exit code %d, want %d: %s", level, code, want, stdout)
		}
	}
}

// Nothing can be said: exit code 2, nothing on the output, and the cure at the end of the message.
func TestAuditRefuses(t *testing.T) {
	t.Chdir("testdata")
	for args, want := range map[string]string{
		"--grants audit/rbac.yaml -o wide":         `--output "wide" is not known: use text, json, yaml, sarif or html`,
		"--grants audit/rbac.yaml --fail-on fatal": `--fail-on "fatal" is no level: use error, warning or note`,
		"--grants audit/rbac.yaml --many 0":        `--many 0 lets no subject hold a verb: use 1 or more`,
		"--grants audit/none.yaml":                 `name a file or a directory that can be read`,
		"--permissions audit/documents.yaml":       `--grants is missing`,
		"--grants -":                               `have no Role, ClusterRole or binding: name files that have some`,
		"--grants audit/rbac.yaml --crd none.yaml": `none.yaml`,
		"--grants audit/rbac.yaml,audit/rbac.yaml": `is given twice: remove one`,
		"--server https://127.0.0.1:1":             `or audit files with --grants`,
		"all":                                      `unknown command "all"`,
	} {
		code, stdout, stderr := execute(t, "", append([]string{"audit"}, strings.Fields(args)...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.HasPrefix(stderr, "error: ") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

// Names of objects may have characters that move the cursor or reorder text.
func TestAuditPrintsWhatOthersNamed(t *testing.T) {
	raw, err := os.ReadFile("testdata/audit/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hostile := strings.ReplaceAll(string(raw), `"granular:scal"`, `"granular:sc\u202eal\u001b[31m"`)
	for _, format := range []string{"text", "json", "yaml", "sarif", "html"} {
		_, stdout, stderr := execute(t, hostile, "audit", "--grants", "-", "-o", format)
		if strings.ContainsAny(stdout+stderr, "\x1b\u202e") || !strings.Contains(stdout, "202e") {
			t.Errorf("%s: stderr %q, stdout %q", format, stderr, stdout)
		}
	}
}

// An interrupt leaves an answer that says what it lacks.
func TestAuditInterruptedSaysSo(t *testing.T) {
	t.Chdir("testdata")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, format := range []string{"text", "json", "sarif"} {
		var out, errOut bytes.Buffer
		args := append(strings.Fields("audit -o "+format), strings.Fields(auditFiles)...)
		code := run(ctx, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
		if code != 2 || !strings.Contains(errOut.String(), "warning: the audit was interrupted") {
			t.Errorf("%s: exit code %d, stderr %q", format, code, errOut.String())
		}
		if format != "text" && (!json.Valid(out.Bytes()) || !strings.Contains(out.String(), "nterrupted")) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}

func TestAuditEndsQuietlyWithItsReader(t *testing.T) {
	t.Chdir("testdata")
	var stderr bytes.Buffer
	code := run(t.Context(), append([]string{"audit"}, strings.Fields(auditFiles)...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: closedPipe{}, ErrOut: &stderr})
	if code != 1 || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}
