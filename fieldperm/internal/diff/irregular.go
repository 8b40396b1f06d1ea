package diff

import (
	"iter"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// An object is irregular if its names do not tell its fields apart: a name occurs twice, or, where the API server keeps unknown fields, a name differs
// in case only from another one or from one of the schema. Programs do not agree on what they read there, so any change of such an object counts
// as a change of the whole (D10).

// Irregular reports whether one of the objects is.
func (d *Differ) Irregular() bool {
	return d.Old.NamesRepeat() || d.New.NamesRepeat() || d.Kind.Folds() && (d.respells(d.Kind.Root, d.Old) || d.respells(d.Kind.Root, d.New))
}

// respells reports whether names at or below a value differ in case only where they must not.
func (d *Differ) respells(n *schema.Node, v rawjson.Value) bool {
	if d.Stops() {
		return false
	}
	switch {
	case v.IsObject() && n.Map() != nil:
		if n.Respells(namesOf(v)) {
			return true
		}
		for m := v.Members(); m.Next(); {
			if child, _ := n.Map().Lookup(m.Name().Bytes()); d.respells(child, m.Value()) {
				return true
			}
		}
	case v.IsList() && n.List() != nil:
		for i := v.Items(); i.Next(); {
			if d.respells(n.List().Item(), i.Value()) {
				return true
			}
		}
	}
	return false
}

func namesOf(v rawjson.Value) iter.Seq[string] {
	return func(yield func(string) bool) {
		for m := v.Members(); m.Next(); {
			if !yield(m.Name().String()) {
				return
			}
		}
	}
}
