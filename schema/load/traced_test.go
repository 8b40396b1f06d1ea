package load

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// outline returns a text with everything that affects decisions on kinds, kind by kind.
func outline(s *schema.Schema) []string {
	var out []string
	for _, k := range s.Kinds() {
		var b strings.Builder
		fmt.Fprintf(&b, "%s lossy=%t hides=%t barriers=%v instead=%q\n", k, k.Lossy(), k.MayHide(""), k.HiddenBarriers(nil), k.Instead())
		k.Guarded(20_000, func(p fieldpath.Pattern, n *schema.Node) {
			for _, guard := range n.Permissions() {
				fmt.Fprintf(&b, " %s %s %v %v %v %v\n", p, guard.Describe(), guard.Excluded(), guard.ExcludedWhen(), guard.Apart(), n.Worth(guard))
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
	docs = docs.Append(files, schema.Documents{Topologies: []schema.Topology{aggregated}})
	plain, errs := schema.Compile(docs)
	docs.Traced = true
	traced, others := schema.Compile(docs)
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
