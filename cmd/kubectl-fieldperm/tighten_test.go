package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const operator = "system:serviceaccount:ops:operator"

// tightenCases are the calls whose complete output is in testdata/tighten/golden/NAME. Spaces separate words.
var tightenCases = []struct {
	name, args string
	code       int
}{
	{"proposal.text", "--audit-log audit.log", 0},
	{"generalized.text", "--audit-log audit.log --generalize image,condition", 0},
	{"width.yaml", "--audit-log audit.log --generalize deployments.apps=image --also deployments/status.apps=granular:condition(Available) --also events=granular:message --keep-update configmaps -o yaml", 0},
	{"namespaces-seen.yaml", "--audit-log audit.log --namespaces seen --names seen -o yaml", 0},
	{"proposal.json", "--audit-log audit.log -o json", 0},
	{"gaps.text", "--audit-log gaps.log", 1},
	{"gaps.yaml", "--audit-log gaps.log -o yaml", 1},
	{"new.yaml", "--audit-log gaps.log -o yaml --allow-new", 1},
	{"simulation.text", "--audit-log audit.log --simulate later.log", 1},
	{"simulation-of-the-same.text", "--audit-log audit.log --simulate audit.log", 0},
}

func TestTightenGolden(t *testing.T) {
	t.Chdir("testdata/tighten")
	goldens := map[string]bool{}
	for _, test := range tightenCases {
		file := filepath.Join("golden", test.name)
		goldens[file] = true
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := execute(t, "", append([]string{"tighten", operator, "--grants", "rbac.yaml"}, strings.Fields(test.args)...)...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			golden(t, file, stdout+stderr)
		})
	}
	onlyGoldens(t, goldens)
}

func TestTightenReadsStandardInput(t *testing.T) {
	t.Chdir("testdata/tighten")
	log, err := os.ReadFile("audit.log")
	if err != nil {
		t.Fatal(err)
	}
	// The last line is truncated.
	code, stdout, stderr := execute(t, string(log[:len(log)-100]), "tighten", operator, "--grants", "rbac.yaml", "--audit-log", "-")
	if code != 0 || !strings.Contains(stdout, "3 writes, the end is truncated") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestTightenRefusesBadInput(t *testing.T) {
	t.Chdir("testdata/tighten")
	for _, test := range []struct{ args, want string }{
		{"system:serviceaccount:ops:operatr --audit-log audit.log", `did you mean ["` + operator + `"]?`},
		{"system:serviceaccount:ops --audit-log audit.log", "write system:serviceaccount:NAMESPACE:NAME"},
		{"group:system:masters --audit-log audit.log", "no role can be taken from it"},
		{"jane --audit-log audit.log", "has no write of the subject"},
		{operator, "has no write of the subject"},
		{operator + " --audit-log missing.log", "name a file that can be read"},
		{operator + " --audit-log audit.log --audit-log audit.log", "is given twice"},
		{operator + " --audit-log - --simulate -", "more than once"},
		{operator + " --audit-log audit.log --namespaces some", "use held or seen"},
		{operator + " --audit-log audit.log -o table", "use text, json or yaml"},
		{operator + " --audit-log audit.log --apply", "need a cluster"},
		{operator + " --apply --undo", "exclude each other"},
		{operator + " --include-hints --audit-log audit.log", "give --managed-fields"},
		{operator + " --managed-fields x", "reads live objects"},
		{operator + " --dry-run maybe", "use none, client or server"},
	} {
		code, stdout, stderr := execute(t, "", append([]string{"tighten", "--grants", "rbac.yaml"}, strings.Fields(test.args)...)...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "error: ") || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", test.args, code, stdout, stderr, test.want)
		}
	}
}
