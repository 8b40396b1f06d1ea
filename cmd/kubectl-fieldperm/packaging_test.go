package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

// krewPlugin is what krew reads of a manifest.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// filledIn fills in the template of the manifest as krew-release-bot does at a release.
func filledIn(t *testing.T, version string) *krewPlugin {
	t.Helper()
	raw, err := os.ReadFile("../../.krew.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tag := map[string]string{"TagName": version}
	render := func(text string, functions template.FuncMap) string {
		parsed, err := template.New("krew").Funcs(functions).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, tag); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := render(string(raw), template.FuncMap{"addURIAndSha": func(uri, _ string) string {
		return fmt.Sprintf("uri: %s\n    sha256: %s", render(uri, nil), strings.Repeat("a", 64))
	}})
	var out krewPlugin
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return &out
}

func TestKrewManifestNamesWhatDistBuilds(t *testing.T) {
	p := filledIn(t, "v1.2.3")
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "fieldperm" || p.Spec.Version != "v1.2.3" {
		t.Errorf("%+v", p)
	}
	if n := len(p.Spec.ShortDescription); n == 0 || n > 50 || p.Spec.Homepage == "" || p.Spec.Description == "" {
		t.Errorf("krew wants a description, a homepage and a short description of at most 50 characters, which has %d", n)
	}
	script, err := os.ReadFile("../../hack/dist.sh")
	if err != nil {
		t.Fatal(err)
	}
	built := strings.Fields(regexp.MustCompile(`PLATFORMS:-([^}]*)}`).FindStringSubmatch(string(script))[1])
	var named []string
	for _, platform := range p.Spec.Platforms {
		system, machine := platform.Selector.MatchLabels["os"], platform.Selector.MatchLabels["arch"]
		named = append(named, system+"/"+machine)
		binary := "kubectl-fieldperm"
		if system == "windows" {
			binary += ".exe"
		}
		if want := "https://github.com/fieldperm/fieldperm/releases/download/v1.2.3/kubectl-fieldperm_v1.2.3_" + system + "_" + machine + ".tar.gz"; platform.URI != want || platform.Bin != binary {
			t.Errorf("%s has %s in %s, want %s in %s", named[len(named)-1], platform.Bin, platform.URI, binary, want)
		}
	}
	if !slices.Equal(named, built) {
		t.Errorf(".krew.yaml has %v, hack/dist.sh builds %v", named, built)
	}
}

// kubectl runs kubectl_complete-fieldperm, which asks the plugin by kubectl.
func TestKubectlCompletesThePlugin(t *testing.T) {
	script, err := filepath.Abs("../../deploy/kubectl-plugin/kubectl_complete-fieldperm")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(script)
	if err != nil || !strings.HasSuffix(string(raw), "\nexec kubectl fieldperm __complete \"$@\"\n") {
		t.Errorf("%v: %s", err, raw)
	}
	if info, err := os.Stat(script); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%s cannot be run: %v", script, err)
	}
	for args, want := range map[string]string{
		"explain deploy.spec.rep":                     "deploy.spec.replicas\n",
		"explain deploy.spec.template.spec.containe":  "deploy.spec.template.spec.containers\n",
		"explain pods.spec.containers.imagePu":        "pods.spec.containers.imagePullPolicy\n",
		"explain gadgets.spec.col --crd explain/x":    "",
		"conditions granular:suspen":                  "granular:suspension\n",
		"conditions delete priorityc":                 "priorityclass\npriorityclasses\n",
		"status -o ht":                                "html\n",
		"why extra":                                   "",
		"review --output ":                            "table\njson\nyaml\n",
		"stat":                                        "status\t",
		"explain deploy.spec.nothing.at":              "",
		"explain configmaps.metadata.annotations.any": "",
	} {
		code, stdout, _ := execute(t, "", append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if code != 0 || want != "" && !strings.Contains("\n"+stdout, "\n"+want) || want == "" && !strings.HasPrefix(stdout, ":") {
			t.Errorf("%s: exit code %d, %q", args, code, stdout)
		}
	}
}
