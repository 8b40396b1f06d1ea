package preflight

import (
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// Fields of the same type with the same barrier share a node, but are counted as two paths.
func TestDescribe_CountsEachField(t *testing.T) {
	parser, err := typed.NewParser(`types:
- name: gadget
  map:
    fields:
    - {name: a, type: {scalar: string}}
    - {name: b, type: {scalar: string}}
`)
	if err != nil {
		t.Fatal(err)
	}
	gvk := runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	guard := func(path string) compile.Entry {
		return compile.Entry{FieldPermission: v1alpha1.FieldPermission{Path: path, Verb: "secretive", Excluded: true}}
	}
	compiled, errs := compile.Compile(compile.Documents{
		Topologies:  []compile.Topology{{Source: "test", Types: &parser.Schema, Kinds: map[runtimeschema.GroupVersionKind]string{gvk: "gadget"}}},
		Permissions: []compile.PermissionDocument{{Source: "test", Rank: compile.RankAdministrator, Group: gvk.Group, Kind: gvk.Kind, Entries: []compile.Entry{guard(".a"), guard(".b")}}},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	kind, err := compiled.Kind(gvk)
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(kind); !strings.HasSuffix(got, "barriers: 2") {
		t.Errorf("got %q, want 2 barriers", got)
	}
}
