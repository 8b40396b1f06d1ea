package load

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// unknownVaults is a Vault whose specification may have unknown fields.
func unknownVaults() string {
	return strings.Replace(vaults("v1"), "spec: {type: object, ", "spec: {type: object, "+keepUnknown+", ", 1)
}

// annotatedVaults returns the definition with an entry for each path.
func annotatedVaults(definition string, paths ...string) string {
	var entries []string
	for _, path := range paths {
		entries = append(entries, fmt.Sprintf(`{"path":%q,"verb":"example.com/y"}`, path))
	}
	return strings.Replace(definition, "metadata: {name: vaults.example.com}", "metadata: {name: vaults.example.com, annotations: {fieldperm.dev/permission-verbs: '{\"v1\":["+strings.Join(entries, ",")+"]}'}}", 1)
}

// TestC2_APathIsAsLongAsInAPermissionSchema in every document: an API server limits the annotation of a definition to 256 KiB only, and a file to nothing.
func TestC2_APathIsAsLongAsInAPermissionSchema(t *testing.T) {
	longest := ".spec." + strings.Repeat("ä", v1alpha1.MaxPathLength-len(".spec."))
	runners := func(path string) string {
		return strings.Replace(runner("{type: object, "+keepUnknown+"}"), "name: {type: string}", "name: {type: string}, "+path+": {type: object, "+keepUnknown+"}", 1)
	}
	name := strings.TrimPrefix(longest, ".spec.")
	for of, c := range map[string]struct {
		documents func(more string) []string
		pointer   string
	}{
		"an annotation": {func(more string) []string { return []string{annotatedVaults(unknownVaults(), longest+more)} }, "d0.yaml:/metadata/annotations/fieldperm.dev~1permission-verbs/v1/0"},
		"a file": {func(more string) []string {
			return []string{unknownVaults(), permissionSchema("a", "example.com", "Vault", "{path: "+longest+more+", verb: example.com/y}")}
		}, "d1.yaml:/spec/permissions/0"},
		"an include": {func(more string) []string {
			return []string{runners(name + more), permissionSchema("a", "example.com", "Runner", "{path: "+longest+more+", include: podTemplate}")}
		}, "d1.yaml:/spec/permissions/0"},
	} {
		t.Run(of, func(t *testing.T) {
			if _, errs := compileFragments(t, c.documents("")...); len(errs) > 0 {
				t.Errorf("%d characters: %.300v", v1alpha1.MaxPathLength, errs)
			}
			_, errs := compileFragments(t, c.documents("x")...)
			want := fmt.Sprintf("%s: path %q… has 1025 characters: guard a field above it, with a path of at most 1024", c.pointer, longest[:len(".spec.")+2*58])
			if len(errs) != 1 || errs[0].Error() != want {
				t.Errorf("one more: %.500v, want %s", errs, want)
			}
		})
	}
}

// TestC2_ACompileTakesMemoryWithTheLengthOfPaths: not with its square, for paths that exist and for those that do not.
func TestC2_ACompileTakesMemoryWithTheLengthOfPaths(t *testing.T) {
	const names = 50
	allocated := func(definition string, steps int) uint64 {
		var paths []string
		for i := range names {
			paths = append(paths, fmt.Sprintf(".spec.n%d%s", i, strings.Repeat("[*]", steps)))
		}
		definition = annotatedVaults(definition, paths...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, errs := compileFragments(t, definition)
		runtime.ReadMemStats(&after)
		for _, err := range errs {
			if !strings.Contains(err.Error(), "does not exist") {
				t.Fatal(err)
			}
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	for name, definition := range map[string]string{"unknown fields": unknownVaults(), "fields that do not exist": vaults("v1")} {
		allocated(definition, 1) // What a process makes once.
		least := allocated(definition, 1)
		half, whole := allocated(definition, 165)-least, allocated(definition, 330)-least
		if whole > half*5/2 {
			t.Errorf("%s: paths of 165 steps take %d KiB, of 330 steps %d KiB", name, half>>10, whole>>10)
		}
	}
}

// TestC2_AKindHasABoundedNumberOfPlaces: at each step of a path through unknown fields a parameter is emitted or not, so that the places double.
func TestC2_AKindHasABoundedNumberOfPlaces(t *testing.T) {
	sources := func(steps int) string {
		var entries []string
		for i := range steps {
			entries = append(entries, fmt.Sprintf("{path: '.spec.free%s', parameterSource: p%d}", strings.Repeat("[*]", i), i))
		}
		return permissionSchema("a", "example.com", "Vault", strings.Join(append(entries, "{path: '.spec.free"+strings.Repeat("[*]", steps)+"', verb: example.com/y}"), ", "))
	}
	if _, errs := compileFragments(t, unknownVaults(), sources(8)); len(errs) > 0 {
		t.Errorf("8 steps: %v", errs)
	}
	s, errs := compileFragments(t, unknownVaults(), sources(100))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "d1.yaml:/spec/permissions/") || !strings.Contains(errs[0].Error(), "stand for more than 50000 places") {
		t.Errorf("100 steps: %.500v", errs)
	}
	if _, err := s.Kind(vaultKind); err == nil {
		t.Error("the kind is in force")
	}
}
