package load

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// outline returns a text with everything that affects decisions on kinds, kind by kind.
func outline(s *schema.Schema) []string {
	var out []string
	for _, k := range s.Kinds() {
		var b strings.Builder
		fmt.Fprintf(&b, "%s lossy=%t barriers=%v instead=%q\n", k, k.Lossy(), k.HiddenBarriers(nil), k.Instead())
		k.Guarded(20_000, func(p fieldpath.Pattern, n *schema.Node) {
			for _, guard := range n.Permissions() {
				fmt.Fprintf(&b, " %s %s %v %v %v %v\n", p, guard.Describe(), guard.Excluded(), guard.ExcludedWhen(), guard.BarsOnly(), n.Worth(guard))
			}
		})
		out = append(out, b.String())
	}
	slices.Sort(out)
	return out
}

// TestTraced_ChangesNothingElse: built-in kinds, a definition, an aggregated API and a PermissionSchema.
func TestTraced_ChangesNothingElse(t *testing.T) {
	docs, errs := builtInDocuments()
	noErrors(t, errs)
	files, errs := Files([]string{"testdata/widgets.crd.yaml", "testdata/permissions.yaml"})
	noErrors(t, errs)
	raw, err := os.ReadFile("testdata/fischers.openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	aggregated, err := OpenAPIV3("openapi/v3/apis/sea.example.com/v1", raw)
	if err != nil {
		t.Fatal(err)
	}
	docs = docs.Append(files, compile.Documents{Topologies: []compile.Topology{aggregated}})
	plain, errs := compile.Compile(docs)
	docs.Traced = true
	traced, others := compile.Compile(docs)
	if fmt.Sprint(errs) != fmt.Sprint(others) {
		t.Errorf("faults %v, traced %v", errs, others)
	}
	if got, want := outline(traced), outline(plain); !slices.Equal(got, want) {
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("traced\n%s\nwant\n%s", got[i], want[i])
			}
		}
	}
	forms := map[schema.Form]int{}
	for _, k := range traced.Kinds() {
		k.Guarded(20_000, func(p fieldpath.Pattern, n *schema.Node) {
			for _, guard := range n.Permissions() {
				if len(guard.Origins()) == 0 && len(p) > 0 {
					t.Errorf("%s %s: %s has no origin", k, p, guard.Describe())
				}
				for _, o := range guard.Origins() {
					forms[o.Form]++
					if (o.Source == "") != (o.Form == schema.FormCatalogue) {
						t.Errorf("%s %s: %s is of %+v", k, p, guard.Describe(), o)
					}
				}
			}
		})
	}
	for _, form := range []schema.Form{schema.FormCatalogue, schema.FormSchemaKeys, schema.FormOpenAPI, schema.FormPermissionSchema} {
		if forms[form] == 0 {
			t.Errorf("no verb is of the form %q: %v", form, forms)
		}
	}
	if forms[""] > 0 {
		t.Errorf("%d verbs have no form", forms[""])
	}
	d, err := traced.Kind(gvk("example.com", "v1", "Widget"))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Trace(); got.Resource.Resource != "widgets" || !slices.Contains(got.Names, "widget") {
		t.Errorf("names %+v", got)
	}
}

// TestTraced_EqualVersionsAreLossless: the verbs of two versions of an aggregated kind come from two documents, which makes no difference.
func TestTraced_EqualVersionsAreLossless(t *testing.T) {
	docs, errs := builtInDocuments()
	noErrors(t, errs)
	const fields = `"cranes": {"type": "integer", "x-kubernetes-permission-verb": "example.com/cranes", "x-kubernetes-permission-excluded-when": "self > 2"}`
	versions := func(second string) (lossy map[bool]bool) {
		lossy = map[bool]bool{}
		for _, traced := range []bool{false, true} {
			all := docs
			all.Traced = traced
			for version, fields := range map[string]string{"v1": fields, "v2": second} {
				raw := strings.ReplaceAll(string(harbours(fields, nil)), `"version": "v1", "kind"`, `"version": "`+version+`", "kind"`)
				topology, err := OpenAPIV3("openapi/v3/apis/sea.example.com/"+version, []byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				all = all.Append(compile.Documents{Topologies: []compile.Topology{topology}})
			}
			s, errs := compile.Compile(all)
			noErrors(t, errs)
			k, err := s.Kind(harbour)
			if err != nil {
				t.Fatal(err)
			}
			lossy[traced] = k.Lossy()
		}
		return lossy
	}
	if got := versions(fields); got[false] || got[true] {
		t.Errorf("equal versions: lossy %t, traced %t", got[false], got[true])
	}
	for _, other := range []string{`"cranes": {"type": "integer"}`, strings.Replace(fields, "> 2", "> 3", 1), strings.Replace(fields, "cranes", "lifts", 1), strings.Replace(fields, "/cranes", "/lifts", 1)} {
		if got := versions(other); !got[false] || !got[true] {
			t.Errorf("with %s: lossy %t, traced %t", other, got[false], got[true])
		}
	}
}
