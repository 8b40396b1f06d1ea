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
	for name, data := range map[string][]byte{
		"hook.yaml": []byte(hook), "ca.crt": crt, "client.crt": crt, "client.key": key, "other.key": other, "token": []byte("t"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// said returns the faults, or the warnings, one per line.
func said(err error, warnings []string) string {
	var problems Problems
	if errors.As(err, &problems) {
		return problems.Error() + "\n"
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
		path := filepath.Join(dir, "case.kubeconfig")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return authorizationSaid("authorization.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- type: Webhook\n  name: hook\n  webhook:\n"+
			"    authorizedTTL: 10s\n    timeout: 3s\n    subjectAccessReviewVersion: v1\n    failurePolicy: Deny\n    connectionInfo: {type: KubeConfigFile, kubeConfigFile: "+path+"}\n")
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
				input := strings.NewReplacer("$HOOK", filepath.Join(dir, "hook.yaml"), "$DIR", dir).Replace(text)
				got := strings.ReplaceAll(ask("config.yaml", input), dir, "$DIR")
				if !*update && strings.TrimSpace(got) != strings.TrimSpace(want) {
					t.Errorf("%s: said\n%s\nwant\n%s", title, got, want)
				}
				out += "\n=== " + title + "\n" + text + ">>>\n" + got
			}
			if *update {
				if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
