package walk

import (
	"iter"
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// An object is irregular if its names do not tell its fields apart: a name occurs twice, or, where the API server keeps unknown fields, a name differs
// in case only from another one or from one of the schema. Programs do not agree on what they read there, so any change of such an object is charged
// as a change of the whole (D10).

// ChargeIrregular charges the whole object if an object is irregular and the two differ. It reports whether an object is irregular.
func (d *Differ) ChargeIrregular() bool {
	if !d.Old.NamesRepeat() && !d.New.NamesRepeat() && !(d.Kind.Folds() && (d.respells(d.Kind.Root, d.Old) || d.respells(d.Kind.Root, d.New))) {
		return false
	}
	if !d.Same.Equal(d.Old, d.New) {
		d.chargeWhole()
	}
	return true
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

// chargeWhole charges the root, and each barrier of the kind and of the sets.
func (d *Differ) chargeWhole() {
	d.whole = true
	op := operation(d.Old, d.New)
	d.Charge(d.Root, op)
	barriers := d.Kind.Root.BarredWithin(d.all)
	if d.all.Has(verbs.All()) {
		barriers = append(barriers, verbs.All())
	}
	for _, v := range d.Kind.HiddenBarriers(d.all) {
		if !slices.Contains(barriers, v) {
			barriers = append(barriers, v)
		}
	}
	for _, v := range barriers {
		d.Out = append(d.Out, change.Requirement{Operation: op, Chain: []verbs.Verb{v}, Barrier: 0})
	}
	for i := range d.Out {
		d.Out[i].Instead = "a name in the object occurs twice, or differs from another one in case only: leave out one of the two"
	}
}
