package ladder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// sharing are the modules of this repository that are built beside fieldperm. test/crdrefdocs/tools is not among them: crd-ref-docs
// needs older libraries of Kubernetes; nor are those of test/controlplane/versions, which are made of them. The modules of test/controllers and those below test/peers are those of other projects, with the
// libraries that these compile with.
var sharing = []string{"examples/operator", "generators/analyzer", "hack/tools", "test/browser", "test/controlplane", "test/deploy/tools", "test/observability", "test/peers/fieldperm", "test/peers/policy"}

// below are the modules that all libraries of Kubernetes import, and these libraries.
var below = []string{
	"github.com/go-logr/logr", "github.com/google/gnostic-models", "go.yaml.in/yaml/", "golang.org/x/", "google.golang.org/grpc", "google.golang.org/protobuf",
	"k8s.io/", "sigs.k8s.io/",
}

// Go compiles a package again if one that it imports has another version. One other version of golang.org/x/net compiles all of Kubernetes
// a second time, which takes minutes.
func TestModules_CompileTheLibrariesOfKubernetesOnce(t *testing.T) {
	own := versions(t, ".")
	for _, module := range sharing {
		for path, version := range versions(t, module) {
			if want := own[path]; want != "" && version != want {
				t.Errorf("%s/go.mod has %s %s, go.mod has %s: use one version", module, path, version, want)
			}
		}
	}
}

// versions returns the versions of the modules below that a go.mod requires, after its replacements.
func versions(t *testing.T, module string) map[string]string {
	t.Helper()
	path := filepath.Join(root, module, "go.mod")
	raw, err := os.ReadFile(path) //nolint:gosec // A file of the repository.
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, require := range file.Require {
		for _, prefix := range below {
			if strings.HasPrefix(require.Mod.Path, prefix) {
				out[require.Mod.Path] = require.Mod.Version
			}
		}
	}
	for _, replace := range file.Replace {
		if out[replace.Old.Path] != "" && replace.New.Version != "" {
			out[replace.Old.Path] = replace.New.Version
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s: none of the libraries that this test is about is required", path)
	}
	return out
}
