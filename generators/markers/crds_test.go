package markers

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	ctmarkers "sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/fieldperm/fieldperm/generators"
)

// runtime returns what controller-gen would have loaded, with the output in memory.
func runtime(t *testing.T, generator crd.Generator, roots []*loader.Package) (*genall.GenerationContext, *artifacts) {
	t.Helper()
	out := &artifacts{}
	registry := &ctmarkers.Registry{}
	if err := generator.RegisterMarkers(registry); err != nil {
		t.Fatal(err)
	}
	return &genall.GenerationContext{
		Collector: &ctmarkers.Collector{Registry: registry}, Roots: roots, OutputRule: out, InputRule: genall.InputFromFileSystem,
		Checker: &loader.TypeChecker{NodeFilters: []loader.NodeFilter{generator.CheckFilter()}},
	}, out
}

func roots(t *testing.T, paths ...string) []*loader.Package {
	t.Helper()
	out, err := Load("", nil, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func crds(t *testing.T, generator crd.Generator, form Form, paths ...string) []generators.CRDFiles {
	t.Helper()
	ctx, _ := runtime(t, generator, roots(t, paths...))
	files, errs := CRDs(ctx, Generator{Generator: generator, Form: form})
	if len(errs) > 0 {
		t.Fatal(lines(t, errs))
	}
	return files
}

func TestCRDs_Golden(t *testing.T) {
	noDescriptions, noVersion := 0, true
	generator := crd.Generator{MaxDescLen: &noDescriptions, OmitToolVersion: &noVersion}
	for _, form := range []Form{Annotated, Deployable} {
		for _, file := range crds(t, generator, form, "./testdata/api/v1/...", "./testdata/api/v1beta1") {
			if file.Permissions != nil {
				t.Errorf("%s has permissions in a file", file.CRD.Name)
			}
			golden(t, "golden/"+string(form)+"/"+file.CRD.Name, string(file.CRD.Data))
		}
	}
}

// TestCRDs_TypesOfAnotherModule: a Pod template has no markers, and its own field does.
func TestCRDs_TypesOfAnotherModule(t *testing.T) {
	got := string(crds(t, crd.Generator{}, Deployable, "./testdata/workload/...")[0].CRD.Data)
	if !strings.Contains(got, `{"path":".spec.template","verb":"template","include":"podTemplate"}]}'`) || !strings.Contains(got, "ephemeralContainers:") {
		t.Errorf("the definition is %.600s", got)
	}
}

// TestG3_CRDsNameVerbsThatAreNotRegistered: the places are those of the markers. A reserved domain is an error, which testdata/bad has.
func TestG3_CRDsNameVerbsThatAreNotRegistered(t *testing.T) {
	ctx, _ := runtime(t, crd.Generator{}, roots(t, "./testdata/workload/..."))
	files, errs := CRDs(ctx, Generator{Form: Deployable, Registry: builtIn(t)})
	if len(errs) > 0 || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), errs)
	}
	golden(t, "golden/names.txt", lines(t, files[0].Warnings))
}

// TestCRDs_AreControllerGens proves that nothing but the keys is different from what controller-gen writes.
func TestCRDs_AreControllerGens(t *testing.T) {
	yes := true
	for name, generator := range map[string]crd.Generator{
		"plain": {}, "embedded metadata": {GenerateEmbeddedObjectMeta: &yes}, "header": {HeaderFile: "testdata/header.txt", Year: "2026"}, "no version": {OmitToolVersion: &yes},
	} {
		t.Run(name, func(t *testing.T) {
			loaded := roots(t, "./testdata/api/v1", "./testdata/api/v1beta1")
			ctx, plain := runtime(t, generator, loaded)
			if err := generator.Generate(ctx); err != nil {
				t.Fatal(err)
			}
			ctx, _ = runtime(t, generator, loaded)
			annotated, errs := CRDs(ctx, Generator{Generator: generator, Form: Annotated})
			if len(errs) > 0 {
				t.Fatal(lines(t, errs))
			}
			deployable, errs := CRDs(ctx, Generator{Generator: generator, Form: Deployable})
			if len(errs) > 0 || len(annotated) != len(*plain) || len(deployable) != len(*plain) {
				t.Fatal(lines(t, errs), len(annotated), len(deployable), len(*plain))
			}
			for i, file := range *plain {
				// The version is that of the program, which is a test here.
				want := strings.ReplaceAll(file.header+file.body.String(), "controller-gen.kubebuilder.io/version: (devel)", "controller-gen.kubebuilder.io/version: "+toolVersion())
				want = strings.ReplaceAll(want, `controller-gen.kubebuilder.io/version: ""`, "controller-gen.kubebuilder.io/version: "+toolVersion())
				if got := without(annotated[i].CRD.Data, "x-kubernetes-permission-"); got != want {
					t.Errorf("%s: annotated, and without the keys, differs from controller-gen's at %s", file.name, firstDifference(got, want))
				}
				got := without(deployable[i].CRD.Data, "fieldperm.dev/permission-verbs: ")
				if name == "no version" {
					got = strings.ReplaceAll(got, "  annotations:\n", "")
				}
				if got != want {
					t.Errorf("%s: deployable, and without the annotation, differs from controller-gen's at %s", file.name, firstDifference(got, want))
				}
			}
		})
	}
}

// without removes the entries whose keys start with a prefix.
func without(raw []byte, prefix string) string {
	var out strings.Builder
	skipped := -1
	for line := range strings.Lines(string(raw)) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if skipped >= 0 && indent > skipped {
			continue
		}
		if skipped = -1; strings.HasPrefix(line[indent:], prefix) {
			skipped = indent
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + " instead of " + b[i]
		}
	}
	return "the end"
}

// TestCRDs_IsRepeatable: maps of Go must not show.
func TestCRDs_IsRepeatable(t *testing.T) {
	first := crds(t, crd.Generator{}, Deployable, "./testdata/api/v1", "./testdata/api/v1beta1")
	second := crds(t, crd.Generator{}, Deployable, "./testdata/api/v1beta1", "./testdata/api/v1")
	if !slices.EqualFunc(first, second, func(a, b generators.CRDFiles) bool {
		return a.CRD.Name == b.CRD.Name && bytes.Equal(a.CRD.Data, b.CRD.Data)
	}) {
		t.Error("two runs give two results")
	}
}
