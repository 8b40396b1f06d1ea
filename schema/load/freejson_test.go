package load

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// D8: package owners reads a null in a built-in kind as an absent field, which is true of fields that Go types have. Free JSON is stored as it was sent, with its
// nulls (kube-apiserver 1.37, seen for ControllerRevisions and ResourceClaims). It must not be a part of an object that has owners of its own: a null in it
// is then in the value of a larger field, which an owner keeps or loses as a whole.
func TestD8_FreeJSONOfBuiltInKindsHasNoOwnersOfItsOwn(t *testing.T) {
	topology, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	w := &freeJSON{types: topology.Types, seen: map[string]bool{}, found: map[string]bool{}}
	for _, name := range topology.Kinds {
		w.named(name)
	}
	// These are structs without fields: of what is sent there, nothing is stored.
	empty := regexp.MustCompile(`^io\.k8s\.api\.(apiserverinternal\.v1alpha1\.StorageVersion\.spec|scheduling\.\w+\.\w+\.(all|basic|single))$`)
	for _, field := range slices.Sorted(maps.Keys(w.found)) {
		if !empty.MatchString(field) {
			t.Errorf("%s is free JSON, and each of its parts has owners: package owners must keep its nulls", field)
		}
	}
	if len(w.found) == 0 || !w.seen["io.k8s.api.core.v1.PodSpec"] {
		t.Errorf("%d types were read, and in none of them was free JSON", len(w.seen))
	}
}

// freeJSON finds the fields whose parts have owners and may have any name and form.
type freeJSON struct {
	types *smd.Schema
	seen  map[string]bool
	found map[string]bool
}

func (w *freeJSON) named(name string) {
	if w.seen[name] {
		return
	}
	w.seen[name] = true
	def, ok := w.types.FindNamedType(name)
	if !ok {
		return
	}
	w.atom(def.Atom, name)
}

func (w *freeJSON) ref(r smd.TypeRef, at string) {
	atom, ok := w.types.Resolve(r)
	switch {
	case !ok:
	case isFree(atom):
		w.found[at] = true
	case r.NamedType != nil:
		w.named(*r.NamedType)
	default:
		w.atom(atom, at)
	}
}

func (w *freeJSON) atom(atom smd.Atom, at string) {
	if l := atom.List; l != nil && l.ElementRelationship == smd.Associative {
		w.ref(l.ElementType, at+"[*]")
	}
	if m := atom.Map; m != nil && m.ElementRelationship != smd.Atomic {
		for _, f := range m.Fields {
			w.ref(f.Type, at+"."+f.Name)
		}
		w.ref(m.ElementType, at+"[*]")
	}
}

// isFree reports whether a value may have any form, and its parts have owners.
func isFree(atom smd.Atom) bool {
	parts := atom.Map
	if parts == nil || parts.ElementRelationship == smd.Atomic || len(parts.Fields) > 0 {
		return false
	}
	return atom.Scalar != nil || parts.ElementType.Inlined.Map != nil && parts.ElementType.Inlined.Scalar != nil
}
