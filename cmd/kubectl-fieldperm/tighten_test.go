package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const operator = "system:serviceaccount:ops:operator"

// tightenCases are the calls whose complete output is in testdata/tighten/golden/NAME, or with the ending yaml the files of --out. Spaces separate
// words.
var tightenCases = []struct {
	name, args string
	code       int
}{
	{"proposal.text", "--audit-log audit.log", 0},
	{"generalized.text", "--audit-log audit.log --generalize image,condition", 0},
	{"width.yaml", "--audit-log audit.log --generalize deployments.apps=image --also deployments/status.apps=granular:condition(Available) --also events=granular:message --keep-update configmaps", 0},
	{"namespaces-seen.yaml", "--audit-log audit.log --namespaces seen --names seen", 0},
	{"proposal.yaml", "--audit-log audit.log", 0},
	{"barriers.text", "--audit-log audit.log --permissions barriers.yaml", 1},
	{"barriers.yaml", "--audit-log audit.log --permissions barriers.yaml --allow-new", 1},
	{"gaps.text", "--audit-log gaps.log", 1},
	{"gaps.yaml", "--audit-log gaps.log", 1},
	{"new.yaml", "--audit-log gaps.log --allow-new", 1},
	{"simulation.text", "--audit-log audit.log --simulate later.log", 1},
	{"simulation-of-the-same.text", "--audit-log audit.log --simulate audit.log", 0},
	{"simulation-of-gaps.text", "--audit-log audit.log --simulate gaps.log", 1},
}

func TestTightenGolden(t *testing.T) {
	t.Chdir("testdata/tighten")
	goldens := map[string]bool{}
	for _, test := range tightenCases {
		file := filepath.Join("golden", test.name)
		goldens[file] = true
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"tighten", operator, "--grants", "rbac.yaml"}, strings.Fields(test.args)...)
			if strings.HasSuffix(test.name, ".yaml") {
				golden(t, file, filesOf(t, test.code, args))
				return
			}
			code, stdout, stderr := execute(t, "", args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			golden(t, file, stdout+stderr)
		})
	}
	onlyGoldens(t, goldens)
}

// filesOf calls the command twice with --out, and returns what it has written. The second call overwrites the files with the same content. The
// output ends with the commands that are at the head of each file.
func filesOf(t *testing.T, want int, args []string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "operator")
	var written []string
	for range 2 {
		code, stdout, stderr := execute(t, "", append(args, "--out", dir)...)
		if code != want {
			t.Errorf("exit code %d, want %d: %s", code, want, stderr)
		}
		var all []string
		for _, name := range []string{"1-add.yaml", "2-remove.yaml", "undo.yaml"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(content))
			var head strings.Builder
			for line := range strings.Lines(string(content)) {
				head.WriteString(strings.TrimPrefix(line, "# "))
			}
			if _, commands, _ := strings.Cut(stdout, "\nStep 1 "); !strings.Contains(head.String(), "\nStep 1 "+commands) {
				t.Errorf("%s does not have the commands %q at its head:\n%s", name, commands, content)
			}
		}
		written = append(written, strings.ReplaceAll(strings.Join(all, "---\n"), dir, "operator"))
	}
	if written[0] != written[1] {
		t.Error("the same call writes other files")
	}
	return written[0]
}

// TestTightenOverwritesOnlyItsOwnFiles: and undo.yaml only while the new one gives all of it back.
func TestTightenOverwritesOnlyItsOwnFiles(t *testing.T) {
	t.Chdir("testdata/tighten")
	roles, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	call := func(grants, want string, wantCode int) {
		t.Helper()
		code, stdout, stderr := execute(t, "", "tighten", operator, "--grants", grants, "--audit-log", "audit.log", "--allow-new", "--out", dir)
		if code != wantCode || !strings.Contains(stdout+stderr, want) {
			t.Errorf("exit code %d, want %d and %q: %s%s", code, wantCode, want, stdout, stderr)
		}
	}
	undo := filepath.Join(dir, "undo.yaml")
	call("rbac.yaml", "kubectl replace -f "+undo+" && kubectl delete -f "+filepath.Join(dir, "1-add.yaml"), 0)
	earlier, err := os.ReadFile(undo)
	if err != nil {
		t.Fatal(err)
	}
	// The ClusterRole has lost update on Deployments since, and keeps it on their status.
	taken := filepath.Join(t.TempDir(), "rbac.yaml")
	if err := os.WriteFile(taken, []byte(strings.Replace(string(roles), "watch, update, patch]", "watch]", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	call(taken, "restores ClusterRole operator, which has other rights by now, and would be overwritten: give --out another directory, or delete the file", 2)
	if now, err := os.ReadFile(undo); err != nil || string(now) != string(earlier) {
		t.Errorf("undo.yaml was overwritten: %v\n%s", err, now)
	}
	linked := t.TempDir()
	if err := os.Symlink(taken, filepath.Join(linked, "undo.yaml")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := execute(t, "", "tighten", operator, "--grants", "rbac.yaml", "--audit-log", "audit.log", "--out", linked); code != 2 || !strings.Contains(stderr, `has "undo.yaml", which this command does not write`) {
		t.Errorf("exit code %d: a link is followed: %s", code, stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	call("rbac.yaml", `has "notes.txt", which this command does not write: give an empty or a new directory`, 2)
}

func TestTightenReadsStandardInput(t *testing.T) {
	t.Chdir("testdata/tighten")
	log, err := os.ReadFile("audit.log")
	if err != nil {
		t.Fatal(err)
	}
	// The last line is truncated.
	code, stdout, stderr := execute(t, string(log[:len(log)-100]), "tighten", operator, "--grants", "rbac.yaml", "--audit-log", "-")
	if code != 1 || !strings.Contains(stdout, "3 writes, the end is truncated") || !strings.Contains(stdout, `audit log "-": its end is truncated`) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestTightenWhatIsNotReadIsNotJudged: a simulation of a log with a line that cannot be read does not end with 0.
func TestTightenWhatIsNotReadIsNotJudged(t *testing.T) {
	t.Chdir("testdata/tighten")
	log, err := os.ReadFile("audit.log")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"truncated": string(log[:len(log)-100]), "broken": string(log) + "{broken\n"} {
		code, stdout, stderr := execute(t, content, "tighten", operator, "--grants", "rbac.yaml", "--audit-log", "audit.log", "--simulate", "-")
		if code != 1 || !strings.Contains(stdout, "0 would be refused\ncannot be judged: audit log") {
			t.Errorf("%s: exit code %d: %s%s", name, code, stdout, stderr)
		}
	}
}

// TestTightenALogWithoutAWriteOfTheSubjectIsNotJudged: a wrong or empty log does not say that nothing would be refused.
func TestTightenALogWithoutAWriteOfTheSubjectIsNotJudged(t *testing.T) {
	t.Chdir("testdata/tighten")
	log, err := os.ReadFile("audit.log")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ content, want string }{
		"empty":           {"", "the log has no write of"},
		"of another user": {strings.ReplaceAll(string(log), operator, "jane"), "the log has no write of"},
		"another stage":   {strings.ReplaceAll(string(log), `"ResponseComplete"`, `"RequestReceived"`), "the log has no write of"},
		"no items":        {`{"kind":"EventList","items":null}` + "\n", "the log has no write of"},
		"no code":         {strings.ReplaceAll(string(log), `"code":200`, `"x":200`), "broken lines, which may be writes"},
	} {
		code, stdout, stderr := execute(t, c.content, "tighten", operator, "--grants", "rbac.yaml", "--audit-log", "audit.log", "--simulate", "-")
		if code != 1 || !strings.Contains(stdout, "0 would be refused\ncannot be judged: ") || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: exit code %d: %s%s", name, code, stdout, stderr)
		}
	}
}

// TestTightenALossIsAcceptedOnlyByItsFlag: the subject may create Roles, and loses the right to grant update with them.
func TestTightenALossIsAcceptedOnlyByItsFlag(t *testing.T) {
	t.Chdir("testdata/tighten")
	rbac, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rbac.yaml")
	text := strings.Replace(string(rbac), "rules:\n", "rules:\n- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create]}\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const loss = "can no longer grant update on deployments.apps, patch on deployments.apps, update on deployments/status.apps"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 1, "\nLost besides update and patch; --allow-loss accepts it:\n- roles.rbac.authorization.k8s.io: "},
		{"--allow-loss", 0, loss},
		{"--simulate audit.log", 1, "cannot be judged: a right besides update and patch is lost: roles.rbac.authorization.k8s.io: "},
		{"--simulate audit.log --allow-loss", 0, "0 would be refused\n"},
	} {
		code, stdout, stderr := execute(t, "", append([]string{"tighten", operator, "--grants", file, "--audit-log", "audit.log"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%q: exit code %d, want %d: %s%s", c.args, code, c.code, stdout, stderr)
		}
	}
}

// TestC1_TightenListsAnAggregatedClusterRole: a controller would write the rules of the proposal into it.
func TestC1_TightenListsAnAggregatedClusterRole(t *testing.T) {
	t.Chdir("testdata/tighten")
	roles, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rbac.yaml")
	roles = append(roles, `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: platform}
aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: restricted, operator: DoesNotExist}]}]}
rules: []
`...)
	if err := os.WriteFile(file, roles, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := execute(t, "", "tighten", operator, "--grants", file, "--audit-log", "audit.log")
	if code != 1 || !strings.Contains(stdout, "New access: not covered by what the subject holds without the proposal:\n- ClusterRole platform is aggregated and selects ClusterRole granular-") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// TestTightenEscapesWhatOthersChoose: names in a log and in objects do not reach the terminal as they are.
func TestTightenEscapesWhatOthersChoose(t *testing.T) {
	t.Chdir("testdata/tighten")
	evil := "m\x1b[2K\r\x1b[1A\u009b1A\u202e\u2066 0 would be refused\n- x"
	log, err := os.ReadFile("later.log")
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(log), `"username":"`+operator+`","groups":[`, `"username":`+string(quoted)+`,"groups":["devs",`)
	text = strings.ReplaceAll(text, `"name":"web"`, `"name":`+string(quoted))
	objects := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"op","annotations":{"note":` + string(quoted) + `}},"rules":[{"apiGroups":["apps"],"resources":["deployments"],"verbs":["update"]}]}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":` + string(quoted) + `},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"op"},"subjects":[{"kind":"Group","name":"devs"}]}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"other"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"op"},"subjects":[{"kind":"User","name":` + string(quoted) + `}]}
`
	file := filepath.Join(t.TempDir(), "rbac.json")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	for _, args := range []string{"", "--out " + dir, "--simulate -"} {
		stdin, from := text, "-"
		if strings.HasPrefix(args, "--simulate") {
			from = filepath.Join(t.TempDir(), "audit.log")
			if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, stdout, stderr := execute(t, stdin, append([]string{"tighten", "group:devs", "--grants", file, "--audit-log", from}, strings.Fields(args)...)...)
		out := stdout + stderr
		files, _ := filepath.Glob(filepath.Join(dir, "*.yaml"))
		for _, name := range files {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out += string(content)
		}
		if code > 1 || !strings.Contains(out, `u202e`) {
			t.Errorf("%q: exit code %d: %q", args, code, out)
		}
		for _, r := range out {
			if r != '\n' && !strconv.IsPrint(r) {
				t.Errorf("%q: %U reaches the terminal", args, r)
			}
		}
		if strings.Contains(out, "\n- x") {
			t.Errorf("%q: a line of the log is a line of the output: %s", args, out)
		}
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
		{operator + " --audit-log audit.log -o yaml", "use text or html"},
		{operator + " --audit-log audit.log --out rbac.yaml", "give an empty or a new directory"},
		{operator + " --audit-log audit.log --out golden", "which this command does not write: give an empty or a new directory"},
		{operator + " --audit-log audit.log --out new --simulate audit.log", "drop it, or drop --out"},
		{operator + " --include-hints --audit-log audit.log", "give --managed-fields"},
		{operator + " --managed-fields x", "reads live objects"},
	} {
		code, stdout, stderr := execute(t, "", append([]string{"tighten", "--grants", "rbac.yaml"}, strings.Fields(test.args)...)...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "error: ") || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", test.args, code, stdout, stderr, test.want)
		}
	}
}
