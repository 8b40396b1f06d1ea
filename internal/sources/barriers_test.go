//go:build integration

package sources

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/compile"
	local "github.com/fieldperm/fieldperm/test/cluster"
)

// TestC3_ABarrierOnAnyPathLeavesTheRestOfTheObjectFree: a PermissionSchema that is about every version may have a barrier on any path of any
// built-in kind, and writes of other fields do not need its verb. Only a path that another served version does not have is hidden there.
// The catalogue is left out, because the test is about the types.
func TestC3_ABarrierOnAnyPathLeavesTheRestOfTheObjectFree(t *testing.T) {
	for name, flags := range map[string]map[string][]string{
		"default":  nil,
		"all APIs": {"runtime-config": {"api/all=true"}, "feature-gates": {"AllAlpha=true,AllBeta=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := local.Start(t.Context(), local.Config{Dir: t.TempDir(), ExtraArgs: flags})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Stop(); err != nil {
					t.Error(err)
				}
			})
			s, err := Once(t.Context(), c.Admin(), nil)
			if err != nil {
				t.Fatal(err)
			}
			barEveryPath(t, s.Documents.Topologies)
		})
	}
}

// barEveryPath compiles a document for each kind with a barrier on each path, and looks for what is hidden.
func barEveryPath(t *testing.T, topologies []compile.Topology) {
	t.Helper()
	paths, places := map[runtimeschema.GroupVersionKind]map[string]bool{}, 0
	union := map[runtimeschema.GroupKind]map[string]bool{}
	for i := range topologies[1:] {
		types := &topologies[1:][i]
		for gvk, name := range types.Kinds {
			paths[gvk] = map[string]bool{}
			collect(types.Types, smd.TypeRef{NamedType: &name}, "", map[string]bool{}, paths[gvk])
			if union[gvk.GroupKind()] == nil {
				union[gvk.GroupKind()] = map[string]bool{}
			}
			maps.Copy(union[gvk.GroupKind()], paths[gvk])
		}
	}
	documents := compile.Documents{Topologies: topologies}
	pathOf := map[string]string{}
	for kind, all := range union {
		document := compile.PermissionDocument{Source: kind.String(), Rank: compile.RankAdministrator, Group: kind.Group, Kind: kind.Kind}
		for i, path := range slices.Sorted(maps.Keys(all)) {
			verb := fmt.Sprintf("example.com/path%d", i)
			pathOf[kind.String()+" granular:"+verb] = path
			document.Entries = append(document.Entries, compile.Entry{FieldPermission: v1alpha1.FieldPermission{Path: path, Verb: verb, Excluded: true}})
			places++
		}
		documents.Permissions = append(documents.Permissions, document)
	}
	compiled, errs := compile.Compile(documents)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	newest := map[runtimeschema.GroupKind]bool{}
	for gvk, own := range paths {
		k, err := compiled.Kind(gvk)
		if err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		if k.Lossy() {
			continue // A write through it may change any field.
		}
		newest[gvk.GroupKind()] = true
		for _, verb := range k.HiddenBarriers(nil) {
			if path := pathOf[gvk.GroupKind().String()+" "+verb.String()]; own[path] {
				t.Errorf("%s: a barrier on %s refuses every write: %s", gvk, path, k.Instead())
			}
		}
	}
	for kind := range union {
		if !newest[kind] {
			t.Errorf("%s: all versions are lossy", kind)
		}
	}
	t.Logf("%d kinds, %d paths", len(union), places)
	if len(union) < 60 || places < 10_000 {
		t.Error("these are too few")
	}
}

// collect adds the paths of a type. It follows a recursive type once.
func collect(types *smd.Schema, ref smd.TypeRef, at string, within, out map[string]bool) {
	if name, inMetadata := strings.CutPrefix(at, ".metadata."); inMetadata && name != "labels" && name != "annotations" || at == ".apiVersion" || at == ".kind" {
		return
	}
	if at != "" {
		out[at] = true
	}
	if ref.NamedType != nil {
		if within[*ref.NamedType] {
			return
		}
		within[*ref.NamedType] = true
		defer delete(within, *ref.NamedType)
	}
	atom, known := types.Resolve(ref)
	if !known || atom.Scalar != nil {
		return
	}
	if atom.List != nil {
		collect(types, atom.List.ElementType, at+"[*]", within, out)
	}
	if atom.Map == nil {
		return
	}
	for _, field := range atom.Map.Fields {
		if !strings.ContainsAny(field.Name, "$-") { // Those of a JSON schema, which have brackets in a path.
			collect(types, field.Type, at+"."+field.Name, within, out)
		}
	}
	if len(atom.Map.Fields) == 0 {
		collect(types, atom.Map.ElementType, at+"[*]", within, out)
	}
}
