package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

var (
	kubeconfigFile = regexp.MustCompile(`kubeConfigFile: \S+`)
	// elided is a certificate in an example.
	elided = regexp.MustCompile(`( *)-----BEGIN CERTIFICATE-----\n *…\n *-----END CERTIFICATE-----\n`)
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://a.example.com"}}]
contexts: [{name: a, context: {cluster: a, user: a}}, {name: conditions, context: {cluster: a, user: a}}]
users: [{name: a, user: {token: a}}]
current-context: a
`

// loadable replaces the kubeconfig and the CA that an example names by existing ones.
func loadable(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := page(t, "generators/testdata/ca.crt")
	text = kubeconfigFile.ReplaceAllString(text, "kubeConfigFile: "+file)
	return elided.ReplaceAllStringFunc(text, func(match string) string {
		indent := elided.FindStringSubmatch(match)[1]
		return indent + strings.ReplaceAll(strings.TrimSpace(ca), "\n", "\n"+indent) + "\n"
	})
}

// loads reads a configuration file as fieldperm-webhook does. Examples cause no warning.
func loads(t *testing.T, source, text string) {
	t.Helper()
	var file struct{ Kind string }
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Errorf("%s: %v", source, err)
		return
	}
	var warnings []string
	var err error
	switch file.Kind {
	case "AuthorizationConfiguration":
		var chain *configfile.Authorization
		if chain, err = configfile.LoadAuthorization(source, []byte(text)); err == nil {
			warnings = chain.Warnings
		}
	case "AuthenticationConfiguration":
		_, warnings, err = configfile.LoadAuthentication(source, []byte(text))
	default:
		err = fmt.Errorf("kind %q is of no file that fieldperm reads", file.Kind)
	}
	if err != nil {
		t.Errorf("%s: %v", source, err)
	}
	for _, warning := range warnings {
		t.Errorf("%s: warning: %s", source, warning)
	}
}

func TestKEP3221_KEP3331_ExamplesLoad(t *testing.T) {
	pages := map[string]int{}
	for _, example := range guides(t) {
		if isConfiguration(example.text) {
			name, _, _ := strings.Cut(example.source, ":")
			pages[name]++
			loads(t, example.source, loadable(t, example.text))
		}
	}
	if pages["docs/guide/authorization.md"] < 2 || pages["docs/guide/authentication.md"] < 3 {
		t.Errorf("examples are in %v only: the test does not see them", pages)
	}
	for _, name := range []string{"config/authorization-chain/authorization.yaml", "config/authentication/authentication.yaml"} {
		loads(t, name, page(t, name))
	}
}

// A configuration in a guide is equal to the installed one.
func TestKEP3221_TheGuideShowsTheInstalledFiles(t *testing.T) {
	var want any
	if err := yaml.UnmarshalStrict([]byte(page(t, "config/authorization-chain/authorization.yaml")), &want); err != nil {
		t.Fatal(err)
	}
	for _, example := range guides(t) {
		var got any
		if isConfiguration(example.text) && yaml.Unmarshal([]byte(example.text), &got) == nil && fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
	t.Error("no page of the documentation shows config/authorization-chain/authorization.yaml")
}
