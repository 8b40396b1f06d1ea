// Package ladder holds the rule that imports go one way: admission → fieldperm → schema → verbs.
package ladder

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fieldperm/fieldperm/"

// may lists, for each package that others build on, the packages of the module that it may depend on.
var may = map[string][]string{
	"verbs":        {"verbs"},
	"api/v1alpha1": {"api/v1alpha1"},
	// What was observed of endpoints is data.
	"schema/endpoint":   {"schema/endpoint"},
	"schema":            {"schema", "schema/endpoint", "verbs", "api/v1alpha1", "internal/spelling"},
	"internal/spelling": {"internal/spelling"},
	// Reading JSON in place is below everything and knows nothing of it.
	"internal/rawjson": {"internal/rawjson"},
	"fieldperm":        {"fieldperm", "internal/rawjson", "schema", "schema/endpoint", "verbs", "api/v1alpha1", "internal/spelling"},
	"schema/load":      {"schema/load", "schema/catalog", "schema", "schema/endpoint", "verbs", "api/v1alpha1", "internal/spelling"},
	"admission":        {"admission", "fieldperm", "internal/rawjson", "schema", "schema/endpoint", "schema/load", "schema/catalog", "verbs", "api/v1alpha1", "internal/spelling"},
}

// mayNot lists what the pure packages must do without, however indirectly.
var mayNot = map[string][]string{
	"verbs":             {"net/http", "k8s.io/", "sigs.k8s.io/"},
	"fieldperm":         {"k8s.io/client-go/", "k8s.io/api/rbac/"},
	"internal/rawjson":  {"net/http", "k8s.io/", "sigs.k8s.io/"},
	"internal/spelling": {"net/http", "k8s.io/", "sigs.k8s.io/"},
}

func deps(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", module+pkg).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pkg, err)
	}
	return strings.Fields(string(out))
}

func TestImportLadder(t *testing.T) {
	for pkg, allowed := range may {
		for _, dep := range deps(t, pkg) {
			if ours, ok := strings.CutPrefix(dep, module); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s depends on %s: imports go admission → fieldperm → schema → verbs only", pkg, ours)
			}
		}
	}
}

func TestPurePackages(t *testing.T) {
	for pkg, forbidden := range mayNot {
		for _, dep := range deps(t, pkg) {
			for _, prefix := range forbidden {
				if dep == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(dep, prefix) {
					t.Errorf("%s depends on %s, which a pure package must do without", pkg, dep)
				}
			}
		}
	}
}
