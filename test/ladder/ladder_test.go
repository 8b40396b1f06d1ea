// Package ladder checks the imports of packages: a package may import only packages of lower layers. Start at layers.
package ladder

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fieldperm/fieldperm/"

// list runs go list with the files of the integration tests and returns its lines.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-tags=integration"}, args...)...)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %q: %v: %s", args, err, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// imports returns the imports of each package of the module without its tests. Names of its own packages have no module path.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, line := range list(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		names := strings.Fields(line)
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], module)
		}
		// The copies below test/previous have the layers of what they are copies of.
		if !strings.HasPrefix(names[0], "test/previous/") || names[0] == "test/previous/replay" {
			out[names[0]] = names[1:]
		}
	}
	return out
}

// layersOf returns the index of each package's layer, and the faults in the list of layers.
func layersOf(layers []layer) (of map[string]int, faults []string) {
	of = map[string]int{}
	for i, l := range layers {
		for _, pkg := range l.packages {
			if _, ok := of[pkg]; ok {
				faults = append(faults, "package \""+pkg+"\" is in two layers: remove it from one of them")
			}
			of[pkg] = i
		}
	}
	return of, faults
}

// judge returns the imports that break the rules, sorted.
func judge(layers []layer, imports map[string][]string) []string {
	of, faults := layersOf(layers)
	for pkg := range of {
		if _, ok := imports[pkg]; !ok {
			faults = append(faults, "package \""+pkg+"\" does not exist: remove it from its layer in test/ladder/layers_test.go")
		}
	}
	for pkg, imported := range imports {
		own, ok := of[pkg]
		if !ok {
			faults = append(faults, "package \""+pkg+"\" is in no layer: add it in test/ladder/layers_test.go, above what it imports and below what imports it")
			continue
		}
		for _, other := range imported {
			if above, ours := of[other]; ours && above >= own {
				faults = append(faults, "package \""+pkg+"\" of layer \""+layers[own].name+"\" imports \""+other+"\" of layer \""+layers[above].name+
					"\", which is not lower: move the code down, or pass it in")
			}
		}
	}
	slices.Sort(faults)
	return faults
}

func TestLadder_NoImportOfAHigherLayer(t *testing.T) {
	of := imports(t)
	for _, fault := range judge(layers, of) {
		t.Error(fault)
	}
	if len(of["internal/server"]) == 0 {
		t.Error("internal/server imports nothing: this test checks nothing")
	}
}

func TestLadder_NamesTheForbiddenImport(t *testing.T) {
	ladder := []layer{{name: "low", packages: []string{"a", "b"}}, {name: "high", packages: []string{"c"}}}
	for want, of := range map[string]map[string][]string{
		"":                                   {"a": {"fmt"}, "b": nil, "c": {"a", "b", "fmt"}},
		`package "c" does not exist: remove`: {"a": nil, "b": nil},
		`package "d" is in no layer: add it`: {"a": nil, "b": nil, "c": nil, "d": nil},
		`package "a" of layer "low" imports "c" of layer "high", which is not lower: move`: {"a": {"c"}, "b": nil, "c": nil},
		`package "a" of layer "low" imports "b" of layer "low", which is not lower: move`:  {"a": {"b"}, "b": nil, "c": nil},
	} {
		got := judge(ladder, of)
		if (want == "") != (len(got) == 0) || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	twice := judge(append(ladder, layer{packages: []string{"a"}}), map[string][]string{"a": nil, "b": nil, "c": nil})
	if len(twice) != 1 || !strings.HasPrefix(twice[0], `package "a" is in two layers: remove`) {
		t.Errorf("got %q", twice)
	}
}

func TestLadder_PurePackages(t *testing.T) {
	within := func(name string, forbidden []string) bool {
		return slices.ContainsFunc(forbidden, func(prefix string) bool {
			return name == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(name, prefix)
		})
	}
	of := imports(t)
	for pkg, forbidden := range mayNot {
		for _, dep := range list(t, "-deps", "./"+pkg) {
			if within(dep, forbidden) {
				t.Errorf("package %q depends on %q: a pure package must do without", pkg, dep)
			}
		}
	}
	for pkg, forbidden := range mayNotImport {
		if len(of[pkg]) == 0 {
			t.Errorf("package %q imports nothing: remove it from mayNotImport", pkg)
		}
		for _, imported := range of[pkg] {
			if within(imported, forbidden) {
				t.Errorf("package %q imports %q: a pure package must do without", pkg, imported)
			}
		}
	}
}
