package schematest

import (
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// Kind compiles the kind of a type of structured-merge-diff: types are the types in YAML, name is that of the type of the
// kind, and entries are what is said of its fields. The group is example.com, the version v1.
func Kind(t testing.TB, types, name, kind string, entries ...compile.Entry) *schema.Kind {
	t.Helper()
	parser, err := typed.NewParser(typed.YAMLObject(types))
	if err != nil {
		t.Fatal(err)
	}
	gvk := runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}
	documents := compile.Documents{Topologies: []compile.Topology{{Source: name, Types: &parser.Schema, Kinds: map[runtimeschema.GroupVersionKind]string{gvk: name}}}}
	if len(entries) > 0 {
		documents.Permissions = []compile.PermissionDocument{{Source: name + ".yaml", Group: gvk.Group, Kind: gvk.Kind, Entries: entries}}
	}
	k, err := Compile(t, documents).Kind(gvk)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
