package generate

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: mice.example.com
spec:
  group: example.com
  scope: Cluster
  names: {plural: mice, singular: mouse, kind: Mouse}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          size: {type: integer, x-kubernetes-permission-verb: example.com/size, x-kubernetes-permission-excluded: true}
`

// run runs fieldperm-gen in process.
func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	command := NewCommand()
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&out)
	command.SetErr(&errs)
	command.SetArgs(args)
	code = Run(command)
	return code, out.String(), errs.String()
}

func save(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, elements ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestCRD(t *testing.T) {
	dir := t.TempDir()
	in, out := save(t, dir, "in.yaml", widgets), filepath.Join(dir, "out.yaml")
	code, stdout, stderr := run(t, "", "crd", "--in", in)
	if code != 0 || stderr != "" || !strings.Contains(stdout, "fieldperm.dev/permission-verbs: '{\"v1\":") || strings.Contains(stdout, "x-kubernetes") {
		t.Fatalf("exit %d, %q, stdout\n%s", code, stderr, stdout)
	}
	if code, piped, stderr := run(t, widgets, "crd", "--in=-"); code != 0 || piped != stdout {
		t.Errorf("from stdin: exit %d, %q", code, stderr)
	}
	if code, nothing, stderr := run(t, "", "crd", "--in", in, "--out", out); code != 0 || nothing != "" || content(t, out) != stdout {
		t.Errorf("to a file: exit %d, %q %q", code, nothing, stderr)
	}
	if code, _, stderr := run(t, "", "crd", "--in", out, "--out", out); code != 0 || content(t, out) != stdout {
		t.Errorf("in place, again: exit %d, %q", code, stderr)
	}
}

func TestManifests(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join("..", "..", "generators", "testdata", "ca.crt")
	out := filepath.Join(dir, "new", "out")
	args := []string{"manifests", "--out", out, "--url=https://127.0.0.1:9443", "--ca-file", ca, "--config-dir=/etc/fieldperm"}
	code, stdout, stderr := run(t, "", args...)
	if code != 0 || stdout != "" || stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	var names []string
	for _, pattern := range []string{"*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(out, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			names = append(names, strings.TrimPrefix(path, out+"/"))
		}
	}
	slices.Sort(names)
	want := []string{"admission", "admission-configuration.yaml", "admission.kubeconfig", "admission/fieldperm.yaml", "authorization-configuration.yaml", "authorizer.kubeconfig", "flowschema.yaml", "guard.yaml", "rbac.yaml"}
	if !slices.Equal(names, want) {
		t.Errorf("files are %q, want %q", names, want)
	}
	webhooks := content(t, out, "admission", "fieldperm.yaml")
	if !strings.Contains(webhooks, "/admit/granular\n") || strings.Contains(webhooks, "/admit/uncovered") || strings.Contains(webhooks, "/admit/schemas") {
		t.Errorf("A8: the static manifest has more than granular, which no set that comes later can change:\n%s", webhooks)
	}
	if text := content(t, out, "admission-configuration.yaml"); !strings.Contains(text, "staticManifestsDir: /etc/fieldperm/admission\n") {
		t.Errorf("admission configuration is\n%s", text)
	}

	code, _, stderr = run(t, "", append(args, "--user=fieldperm", "--client-cert-file=/c.crt", "--client-key-file=/c.key", "--authorized-ttl=1s", "--unauthorized-ttl=2s")...)
	if code != 0 || stderr != "" {
		t.Errorf("exit %d, %q", code, stderr)
	}
	authorization := content(t, out, "authorization-configuration.yaml")
	for _, text := range []string{`request.user != "fieldperm"`, " authorizedTTL: 1s\n", "unauthorizedTTL: 2s\n"} {
		if !strings.Contains(authorization, text) {
			t.Errorf("authorization configuration lacks %q", text)
		}
	}
	if !strings.Contains(content(t, out, "authorizer.kubeconfig"), "client-key: /c.key\n") {
		t.Error("authorizer kubeconfig lacks the key")
	}
}

func TestManifestsREST(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join("..", "..", "generators", "testdata", "ca.crt")
	out := filepath.Join(dir, "out")
	args := []string{"manifests", "--rest", "--out", out, "--url=https://10.96.0.20:9443", "--ca-file", ca, "--config-dir=/etc/fieldperm"}
	code, stdout, stderr := run(t, "", append(args, "--service=fieldperm-system/fieldperm:9443", "--tls-server-name=fieldperm.example.com", "--ca-user=alice,bob")...)
	if code != 0 || stdout != "" || stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	want := []string{"admission-configuration.yaml", "admission.kubeconfig", "authorization-configuration.yaml", "authorizer.kubeconfig", "flowschema.yaml", "guard.yaml", "rbac.yaml", "webhooks.yaml"}
	if !slices.Equal(names, want) {
		t.Errorf("files are %q, want %q", names, want)
	}
	for file, text := range map[string]string{
		"webhooks.yaml":         "port: 9443",
		"guard.yaml":            `"alice", "bob"`,
		"authorizer.kubeconfig": "tls-server-name: fieldperm.example.com",
		"admission.kubeconfig":  "name: fieldperm.fieldperm-system.svc:9443",
	} {
		if !strings.Contains(content(t, out, file), text) {
			t.Errorf("%s lacks %q", file, text)
		}
	}
	if strings.Contains(content(t, out, "webhooks.yaml"), "/admit/uncovered") {
		t.Error("the webhook that fieldperm keeps was written")
	}

	schemas := filepath.Join(dir, "schemas")
	if err := os.MkdirAll(filepath.Join(schemas, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	save(t, schemas, "crd.yaml", widgets)
	save(t, schemas, "README.md", "no: [YAML")
	save(t, filepath.Join(schemas, "below"), "not-read.yaml", "no: [YAML")
	code, _, stderr = run(t, "", append(args, "--write-uncovered", "--permission-schemas", schemas, "--authorized-ttl=15s", "--release-delay=90s")...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, %q", code, stderr)
	}
	if text := content(t, out, "webhooks.yaml"); !strings.Contains(text, "- mice\n") || !strings.Contains(text, "url: https://10.96.0.20:9443/admit/uncovered\n") {
		t.Errorf("webhooks are\n%s", text)
	} else if strings.Contains(text, "- mice/status\n") {
		t.Error("webhooks are for mice/status, through which nothing guarded passes")
	}
	set := save(t, dir, "set.yaml", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: fieldperm.dev/v1alpha1\n  kind: UncoveredPermissionSet\n  metadata: {name: all}\n  spec: {uncoveredPermissions: ['granular:example.com/size']}\n")
	code, _, stderr = run(t, "", append(args, "--write-uncovered", "--permission-schemas", schemas, "--permission-schemas", set)...)
	if code != 0 || !strings.HasPrefix(stderr, "warning: "+set) || !strings.Contains(stderr, "is for every resource") {
		t.Errorf("D5: a set for every resource: exit %d, %q", code, stderr)
	}
}

func TestErrorsNameTheCure(t *testing.T) {
	dir := t.TempDir()
	bad := save(t, dir, "bad.yaml", strings.ReplaceAll(widgets, "verb: example.com/size", "verb: example.com/Si-ze"))
	ca := filepath.Join("..", "..", "generators", "testdata", "ca.crt")
	manifests := func(change ...string) []string {
		return append([]string{"manifests", "--out", filepath.Join(dir, "out"), "--url=https://127.0.0.1:9443", "--ca-file", ca, "--config-dir=/etc/fieldperm"}, change...)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"unknown command":     {[]string{"crds"}, []string{`"crds"`, `see "fieldperm-gen --help"`}},
		"unknown flag":        {[]string{"crd", "--input=x"}, []string{"--input", `see "fieldperm-gen crd --help"`}},
		"argument":            {[]string{"crd", "x.yaml"}, []string{`"x.yaml"`, `see "fieldperm-gen crd --help"`}},
		"crd: no input":       {[]string{"crd"}, []string{"--in is missing: name"}},
		"crd: missing file":   {[]string{"crd", "--in", filepath.Join(dir, "none")}, []string{"--in: open "}},
		"crd: bad file":       {[]string{"crd", "--in", bad}, []string{bad + ":/spec/versions/0/schema/openAPIV3Schema/properties/size: "}},
		"crd: no place":       {[]string{"crd", "--in", save(t, dir, "good.yaml", widgets), "--out", filepath.Join(dir, "none", "x")}, []string{"--out: open "}},
		"manifests: no flags": {[]string{"manifests"}, []string{"--out is missing", "error: --url is missing", "error: --ca-file is missing", "error: --config-dir is missing"}},
		"manifests: no CA":    {manifests("--ca-file", filepath.Join(dir, "none")), []string{"--ca-file: open "}},
		"manifests: CA":       {manifests("--ca-file", bad), []string{"CA bundle: "}},
		"manifests: URL":      {manifests("--url=http://x", "--config-dir=x"), []string{"is not of the form https://host:port", "is not absolute"}},
		"manifests: half":     {manifests("--client-cert-file=/x"), []string{"give both or none"}},
		"manifests: schema":   {manifests("--rest", "--write-uncovered", "--permission-schemas", bad), []string{bad + ":/spec/versions/0/schema/openAPIV3Schema/properties/size: "}},
		"manifests: no file":  {manifests("--rest", "--write-uncovered", "--permission-schemas", filepath.Join(dir, "none")), []string{filepath.Join(dir, "none") + ":"}},
		"manifests: service":  {manifests("--service=a/b"), []string{"--service has no meaning without --rest"}},
		"manifests: several":  {manifests("--write-uncovered", "--tls-server-name=x"), []string{"--write-uncovered has no meaning without --rest", "--tls-server-name has no meaning without --service"}},
		"manifests: schemas":  {manifests("--permission-schemas", bad), []string{"--permission-schemas has no meaning without --write-uncovered", "give them to fieldperm-webhook serve"}},
		"manifests: REST":     {manifests("--rest", "--permission-schemas", bad), []string{"--permission-schemas has no meaning without --write-uncovered"}},
		"manifests: name":     {manifests("--rest", "--service=fieldperm"), []string{`--service "fieldperm": is not of the form NAMESPACE/NAME`}},
		"manifests: port":     {manifests("--rest", "--service=a/b:0"), []string{`--service "a/b:0": is not of the form NAMESPACE/NAME`}},
		"manifests: CA user":  {manifests("--ca-user=alice"), []string{"beside a static manifest fieldperm itself writes the CA bundle"}},
		"manifests: TTL":      {manifests("--authorized-ttl=20s"), []string{"could outlive enforcement", "the release delay longer here and for fieldperm-webhook serve"}},
		"manifests: no place": {manifests("--out", filepath.Join(bad, "x")), []string{"--out: "}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, "", c.args...)
			if code != 1 || stdout != "" {
				t.Errorf("exit %d, stdout %q", code, stdout)
			}
			for _, want := range append(c.want, "error: ") {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr is %q, want %q", stderr, want)
				}
			}
			if n := strings.Count(stderr, "error: "); n != strings.Count(stderr, "\n") && !strings.Contains(stderr, "does not compile") {
				t.Errorf("%d errors in %q", n, stderr)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("files were written in spite of errors")
	}
}

func TestHelpHasAnExample(t *testing.T) {
	for _, name := range []string{"crd", "manifests"} {
		code, stdout, stderr := run(t, "", name, "--help")
		if code != 0 || !strings.Contains(stdout, "Examples:\n") || !strings.Contains(stdout, "fieldperm-gen "+name) {
			t.Errorf("%s --help: exit %d, %q\n%s", name, code, stderr, stdout)
		}
	}
	if code, stdout, _ := run(t, ""); code != 0 || !strings.Contains(stdout, "manifests") {
		t.Errorf("no command: exit %d\n%s", code, stdout)
	}
}

// TestRun_NamesOfOthersInErrors: a name in a document neither controls a terminal nor begins a line.
func TestRun_NamesOfOthersInErrors(t *testing.T) {
	in := save(t, t.TempDir(), "in.yaml", widgets+"          \"a\\e[31m\\n::error::x\": {type: string, x-kubernetes-permission-verb: Bad}\n")
	code, _, stderr := run(t, "", "crd", "--in", in)
	if code != 1 || strings.ContainsAny(stderr, "\x1b") || strings.Contains(stderr, "\n::error") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
