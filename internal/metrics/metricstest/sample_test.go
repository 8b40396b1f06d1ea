package metricstest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A metric that Sample does not use would be missing from the documentation, and no test of alerts and
// dashboard would know it.
func TestSample_UsesEveryMetricThatIsDeclared(t *testing.T) {
	families, err := Sample().Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sampled []string
	for _, family := range families {
		if name, ours := strings.CutPrefix(family.GetName(), "fieldperm_"); ours {
			sampled = append(sampled, name)
		}
	}
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?:Namespace: namespace, Name: |BuildFQName\(namespace, "", )"([a-z_]+)"`)
	declared := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declaration.FindAllSubmatch(source, -1) {
			declared++
			if name := string(match[1]); !slices.Contains(sampled, name) {
				t.Errorf("fieldperm_%s is declared, but Sample does not use it: call what counts it", name)
			}
		}
	}
	if declared != len(sampled) {
		t.Errorf("%d metrics are declared, %d are sampled", declared, len(sampled))
	}
}
