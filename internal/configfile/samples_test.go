package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const samples = "../../testdata/configuration"

// corrected returns a sample changed as its README describes: with kubeconfigs in a directory.
func corrected(t *testing.T, dir, text string) string {
	t.Helper()
	for _, name := range []string{"kube-system-authz-webhook.yaml", "opa-kube-system-authz-webhook.yaml", "opa-default-authz-webhook.yaml"} {
		for _, folder := range []string{dir, filepath.Join(dir, "files")} {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(hook), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings.ReplaceAll(text, "kubeConfigFile: /", "kubeConfigFile: "+dir+"/")
}

// testSamples checks the samples of a kind: a published sample has exactly the faults in its .errors file, and a corrected sample is
// valid.
func testSamples(t *testing.T, kind string, want int, ask func(file, text string) string) {
	files, err := filepath.Glob(filepath.Join(samples, kind, "unmended", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != want {
		t.Errorf("%d samples, want %d", len(files), want)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".errors"
			got := ask(name, string(raw))
			if got == "" || strings.HasPrefix(got, "warning: ") {
				t.Error("the published sample loads without a correction")
			}
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(expected) {
				t.Errorf("said\n%s\nwant\n%s", got, expected)
			}
			raw, err = os.ReadFile(filepath.Join(samples, kind, "mended", name))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(ask(name, corrected(t, t.TempDir(), string(raw)))) {
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
