package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/server"
)

var argument = regexp.MustCompile(`(?m)^\s*(?:- |value: )--([a-z-]+)=?`)

// Every flag that a manifest gives to fieldperm-webhook exists.
func TestManifests_GiveFlagsThatExist(t *testing.T) {
	serve, _, err := server.NewCommand().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	release, _, err := server.NewCommand().Find([]string{"release"})
	if err != nil || release.Name() != "release" {
		t.Errorf("fieldperm-webhook has no command release, which the chart runs: %v", err)
	}
	files := 0
	for _, pattern := range []string{"config/base/deployment.yaml", "config/*/kustomization.yaml", "config/static/fieldperm.yaml", "charts/fieldperm/templates/*.yaml"} {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			flags := serve.Flags()
			if strings.HasSuffix(name, "release.yaml") {
				if release.Name() != "release" {
					continue
				}
				flags = release.Flags()
			}
			matches := argument.FindAllStringSubmatch(string(text), -1)
			if len(matches) > 0 {
				files++
			}
			for _, match := range matches {
				if flags.Lookup(match[1]) == nil && serve.InheritedFlags().Lookup(match[1]) == nil {
					t.Errorf("%s: fieldperm-webhook has no flag --%s", name, match[1])
				}
			}
		}
	}
	if files < 6 {
		t.Errorf("%d files have flags only: the test does not see them", files)
	}
}
