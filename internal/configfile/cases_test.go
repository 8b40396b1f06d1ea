package configfile

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

var update = flag.Bool("update", false, "write the messages of each case to testdata")

// hook is a valid kubeconfig of a webhook.
const hook = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: https://127.0.0.1:1}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

// webhook is a chain of one webhook, whose kubeconfig follows.
const webhook = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: hook
  webhook: {authorizedTTL: 10s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: FILE}}
`

func write(t *testing.T, dir, name, data string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// folder makes a directory with the files that the cases name.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	crt, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"hook.yaml": hook, "ca.crt": string(crt), "client.crt": string(crt), "client.key": string(key), "other.key": string(other), "token": "t",
	} {
		write(t, dir, name, data)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// said returns the faults, or the warnings, one per line.
func said(err error, warnings []string) string {
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	for _, warning := range warnings {
		out.WriteString("warning: " + warning + "\n")
	}
	return out.String()
}

func authorizationSaid(file, text string) string {
	loaded, err := LoadAuthorization(file, []byte(text))
	if err != nil {
		return said(err, nil)
	}
	return said(nil, loaded.Warnings)
}

func authenticationSaid(file, text string) string {
	_, warnings, err := LoadAuthentication(file, []byte(text))
	return said(err, warnings)
}

func TestCases(t *testing.T) {
	dir := folder(t)
	kubeconfigSaid := func(_, text string) string {
		return authorizationSaid("authorization.yaml", strings.Replace(webhook, "FILE", write(t, dir, "case.kubeconfig", text), 1))
	}
	for name, ask := range map[string]func(file, text string) string{
		"authorization": authorizationSaid, "syntax": authorizationSaid, "authentication": authenticationSaid, "kubeconfig": kubeconfigSaid,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".txt")
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(string(raw), "\n=== ")
			out := parts[0]
			for _, part := range parts[1:] {
				title, rest, _ := strings.Cut(part, "\n")
				text, want, ok := strings.Cut("\n"+rest, "\n>>>\n")
				if !ok {
					t.Fatalf("case %q has no >>>", title)
				}
				text = strings.TrimPrefix(text+"\n", "\n")
				input := strings.NewReplacer("$HOOK", filepath.Join(dir, "hook.yaml"), "$DIR", dir, "$FF", "\xff", "$BEL", "\x07", "$BOM", "\ufeff").Replace(text)
				got := strings.ReplaceAll(ask("config.yaml", input), dir, "$DIR")
				if !*update && strings.TrimSpace(got) != strings.TrimSpace(want) {
					t.Errorf("%s: said\n%s\nwant\n%s", title, got, want)
				}
				out += "\n=== " + title + "\n" + text + ">>>\n" + got
			}
			if *update {
				write(t, "testdata", name+".txt", out)
			}
		})
	}
}

const samples = "../../testdata/configuration"

// testSamples checks the samples of a kind: a published sample has exactly the faults in its .errors file, and a corrected sample is
// valid.
func testSamples(t *testing.T, kind string, want int, ask func(file, text string) string) {
	files, err := filepath.Glob(filepath.Join(samples, kind, "unmended", "*.yaml"))
	if err != nil || len(files) != want {
		t.Errorf("%d samples, want %d", len(files), want)
	}
	// The README of the samples describes where they expect kubeconfigs.
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kube-system-authz-webhook.yaml", "opa-kube-system-authz-webhook.yaml", "opa-default-authz-webhook.yaml"} {
		write(t, dir, name, hook)
		write(t, filepath.Join(dir, "files"), name, hook)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			read := func(elements ...string) string {
				raw, err := os.ReadFile(filepath.Join(append([]string{samples, kind}, elements...)...))
				if err != nil {
					t.Fatal(err)
				}
				return string(raw)
			}
			got := ask(name+".yaml", read("unmended", name+".yaml"))
			if got == "" || strings.HasPrefix(got, "warning: ") {
				t.Error("the published sample loads without a correction")
			}
			if *update {
				write(t, filepath.Dir(file), name+".errors", got)
			}
			if want := read("unmended", name+".errors"); got != want {
				t.Errorf("said\n%s\nwant\n%s", got, want)
			}
			mended := strings.ReplaceAll(read("mended", name+".yaml"), "kubeConfigFile: /", "kubeConfigFile: "+dir+"/")
			for line := range strings.Lines(ask(name+".yaml", mended)) {
				if !strings.HasPrefix(line, "warning: ") {
					t.Errorf("the corrected sample does not load: %s", line)
				}
			}
		})
	}
}

func TestKEP3221_Samples(t *testing.T) {
	testSamples(t, "authorization", 7, authorizationSaid)
}

func TestKEP3331_Samples(t *testing.T) {
	testSamples(t, "authentication", 4, authenticationSaid)
}

// Faults are logged, and a fault of a kubeconfig could quote a credential.
func TestNoFaultQuotesACredential(t *testing.T) {
	const head = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://x\"}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	dir := t.TempDir()
	for name, users := range map[string]string{
		"a number":          "users: [{name: u, user: {token: 8211112345678901}}]\n",
		"a user that is it": "users: [{name: u, user: s3cr3t-token}]\n",
		"a list":            "users: [{name: u, user: {token: [s3cr3t-token]}}]\n",
		"exec's env":        "users: [{name: u, user: {exec: {apiVersion: v1, command: x, env: [s3cr3t-token]}}}]\n",
		"a colon":           "users:\n- name: u\n  user:\n    token: s3cr3t-token: more\n",
		"a tag":             "users:\n- name: u\n  user:\n    token: !s3cr3t-token\n",
		"an alias":          "users:\n- name: u\n  user:\n    token: *s3cr3t-token\n",
		"quotes":            "users:\n- name: u\n  user:\n    password: 's3cr3t-token'x\n",
		"key data":          "users: [{name: u, user: {client-key-data: s3cr3t-token}}]\n",
		"twice":             "users: [{name: u, user: {token: s3cr3t-token, token: s3cr3t-token2}}]\n",
		"both":              "users: [{name: u, user: {username: s3cr3t-token, token: x, password: y}}]\n",
		"a kubeconfig":      "s3cr3t-token\n",
	} {
		_, err := LoadAuthorization("f", []byte(strings.Replace(webhook, "FILE", write(t, dir, "kubeconfig", head+users), 1)))
		var problems Problems
		if !errors.As(err, &problems) || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "8211112345678901") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
