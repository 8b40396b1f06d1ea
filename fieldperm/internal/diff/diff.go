package diff

import (
	"context"
	"fmt"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Differ compares two objects. It walks both texts in step. It skips parts with equal bytes, and looks at schema nodes only on the way to parts that
// differ. Some differences in bytes are not differences in value: order, escapes, the spelling of numbers, the keys of lists. Such parts are compared as
// values where they occur. The zero Differ is ready for Start. Only one goroutine may use it.
type Differ struct {
	ctx  context.Context
	Kind *schema.Kind
	// Create: the object is new, and Old is absent.
	Create   bool
	Old, New rawjson.Value
	// Root is the place of the whole object. Between two comparisons it is the memory of places.
	Root *Place
	// Deep means that what is inside a value that changes as a whole is reported everywhere, not only where the schema may bar it.
	Deep bool
	// Same compares old with new values, on the way down.
	Same rawjson.Comparison
	// Owned is the change of managedFields that Compare met.
	Owned Owned
	// Err ends the comparison.
	Err error

	report func(Change)
	// parts are the parts of the place that is looked at.
	parts []pair
	// keys compares the keys of items, wherever they stand.
	keys rawjson.Comparison
	// keyDefaults are the scanned default values of keys that the comparison has met.
	keyDefaults []keyDefault
	// paths and names share memory among places.
	paths fieldpath.Slab
	names rawjson.Texts
	// leaves are the paths of the first scalars that appeared or changed.
	leaves    [mostLeaves]fieldpath.Path
	leafCount int
	// trail and index speed up the lookup of paths that owners name.
	trail trail
	index index
	// decoded are values that the API server may have written, each decoded once: see native.
	decoded map[rawjson.Value]any
	// looks counts visited places, so that the context is checked at intervals. places counts the places that were entered.
	looks  uint
	places uint64
	// changes counts changes that count by themselves, passed places that the API server writes, and defaults those with their declared default.
	changes, passed, defaults int
	// content means that a change of the contents was reported: see isContent.
	content bool
}

// Owned is a change of metadata.managedFields, which package owners compares.
type Owned struct {
	Met      bool
	Old, New rawjson.Value
}

// Start begins the comparison of two objects of a kind. old is absent on CREATE.
func (d *Differ) Start(ctx context.Context, kind *schema.Kind, old, new rawjson.Value) {
	// Each field is set by itself: a Differ is large, and one on the stack would make the stack of the request's goroutine grow.
	d.ctx, d.Kind, d.Create, d.Old, d.New = ctx, kind, old.IsAbsent(), old, new
	if d.Root == nil {
		d.Root = &Place{}
	}
	d.Same.Verbatim = !kind.ShownInFull()
	d.start(d.Root, kind, old, new)
}

// These bound the memory that a Differ keeps for the next comparison: places on a way down, and parts of one place.
const (
	mostPlaces = 32
	mostParts  = 64
)

// End ends the comparison. Root keeps memory for the next one.
func (d *Differ) End() {
	n := 0
	for p := d.Root; p != nil; p = p.below {
		parts := p.changed[:cap(p.changed)]
		if len(parts) > mostParts {
			parts = nil
		}
		clear(parts)
		*p = Place{below: p.below, changed: parts[:0]}
		if n++; n == mostPlaces {
			p.below = nil
		}
	}
	root, parts := d.Root, d.parts[:cap(d.parts)]
	if len(parts) > mostParts {
		parts = nil
	}
	clear(parts)
	*d = Differ{}
	d.Root, d.parts = root, parts[:0]
}

// Context returns the context of the request.
func (d *Differ) Context() context.Context { return d.ctx }

// LookEvery is the number of places between two checks of the context. A place costs some microseconds.
const LookEvery = 4096

// Stops reports whether the comparison is over. Once in LookEvery calls it checks the context.
func (d *Differ) Stops() bool {
	if d.looks++; d.looks%LookEvery == 0 {
		d.Look()
	}
	return d.Err != nil
}

// Look ends the comparison if the context has ended.
func (d *Differ) Look() {
	if d.Err == nil {
		if err := d.ctx.Err(); err != nil {
			d.Err = change.Stopped(err)
		}
	}
}

// Compare reports every change of a value, in the order of the objects. It leaves changed owners to the caller.
func (d *Differ) Compare(report func(Change)) {
	d.report = report
	d.walk(d.Root, d.Old, d.New)
}

// change reports a change that counts by itself.
func (d *Differ) change(p *Place, op change.Operation) {
	d.changes++
	if !d.content && !p.Derived {
		d.content = isContent(p.Path.Top())
	}
	d.report(Change{Place: p, Operation: op})
}

// changeWhole reports a value that has changed as a whole, and what is inside.
func (d *Differ) changeWhole(p *Place, old, new rawjson.Value) {
	d.change(p, OperationOf(old, new))
	d.inside(p, old, new)
}

// mostLeaves is how many changed scalars are remembered. In most requests the requester owns the first of them.
const mostLeaves = 4

// remember stores the path of a scalar that appeared or changed.
func (d *Differ) remember(p fieldpath.Path, old, new rawjson.Value) {
	if d.leafCount < mostLeaves && new.IsScalar() && (old.IsScalar() || old.IsAbsent()) {
		d.leaves[d.leafCount] = p
		d.leafCount++
	}
}

// Leaves returns the paths of the first scalars that appeared or changed.
func (d *Differ) Leaves() []fieldpath.Path { return d.leaves[:d.leafCount] }

// walk reports the differences at and below p.
func (d *Differ) walk(p *Place, old, new rawjson.Value) {
	if d.Stops() || d.Same.Same(old, new) || d.passes(p, old, new) || !d.fits(p, old, new) {
		return
	}
	if old.IsObject() && new.IsObject() && !p.Node.Map().Atomic() && d.membersInStep(p, old, new) {
		return
	}
	switch oldForm, newForm := form(p, old, new), form(p, new, old); {
	case oldForm == formLeaf && newForm == formLeaf, oldForm == formNone && newForm == formLeaf, oldForm == formLeaf && newForm == formNone:
		if !d.Same.Equal(old, new) {
			d.remember(p.Path, old, new)
			d.changeWhole(p, old, new)
		}
	case oldForm == newForm, oldForm == formNone, newForm == formNone:
		if oldForm == formMap || newForm == formMap {
			d.members(p, old, new)
		} else {
			d.items(p, old, new)
		}
	default:
		// The old value disappears, and a value of another form appears.
		d.walk(p, old, rawjson.Value{})
		d.walk(p, rawjson.Value{}, new)
	}
}

// shape says how a value is compared.
type shape byte

const (
	formNone shape = iota
	// formLeaf is compared and charged as a whole: scalars, null, empty and atomic values.
	formLeaf
	formMap
	formList
)

// form returns how v is compared with other. An empty container is a leaf unless other is a container of the same kind.
func form(p *Place, v, other rawjson.Value) shape {
	switch {
	case v.IsAbsent():
		return formNone
	case v.IsObject() && !p.Node.Map().Atomic() && (other.IsObject() || !v.IsEmpty()):
		return formMap
	case v.IsList() && !p.Node.List().Atomic() && (other.IsList() || !v.IsEmpty()):
		return formList
	default:
		return formLeaf
	}
}

// passes reports whether a difference counts for nothing here: the API server makes it (D7, D13), it is the identity of a new object or a
// declared default (C5), or it is left to the comparison of owners (D8).
func (d *Differ) passes(p *Place, old, new rawjson.Value) bool {
	switch p.Node.Role() {
	case schema.RoleServerWritten:
		if d.Create && d.isChosen(p, new) {
			return false
		}
		d.passed++
		return true
	case schema.RoleOwnership:
		d.passed++
		d.Owned = Owned{Met: true, Old: old, New: new}
		return true
	case schema.RoleIdentity:
		if d.Create {
			d.passed++
			return true
		}
	case schema.RoleNone:
	}
	if w := p.Node.Written(); w != nil && !p.Derived && d.writtenByServer(w, false, old, new) {
		d.passed++
		if !d.writtenByServer(w, true, old, new) {
			d.derived(p, old, new)
		}
		return true
	}
	if d.Create && isDefault(p.Node.Default(), new) {
		d.defaults++
		return true
	}
	return false
}

// derived reports the differences at and below p as derived. Around p they count for nothing.
func (d *Differ) derived(p *Place, old, new rawjson.Value) {
	changes := d.changes
	p.Derived = true
	d.walk(p, old, new)
	p.Derived, d.changes = false, changes
}

// isChosen reports whether the client chose the generation of a new object. The API server begins with 1 where it counts changes. Elsewhere
// it leaves the field absent, or stores what the client sends.
func (d *Differ) isChosen(p *Place, new rawjson.Value) bool {
	if new.IsAbsent() || new.Kind() == rawjson.Null || p.Path.String() != ".metadata.generation" {
		return false
	}
	begins, is := new.Int()
	return !is || begins != 0 && begins != 1
}

// isDefault reports whether v equals the default, given as JSON; nil means that there is no default.
func isDefault(fallback []byte, v rawjson.Value) bool {
	if fallback == nil || v.IsAbsent() {
		return false
	}
	doc, err := rawjson.Scan(fallback)
	if err != nil {
		return false
	}
	defer doc.Release()
	var c rawjson.Comparison
	return c.Equal(doc.Root(), v)
}

// fits reports whether the values have a form that the node allows. If not, the comparison ends in an error, unless the values are equal.
func (d *Differ) fits(p *Place, values ...rawjson.Value) bool {
	for _, v := range values {
		if !fits(p.Node, v) {
			if len(values) != 2 || !d.Same.Equal(values[0], values[1]) {
				d.Err = &change.InvalidObjectError{Path: p.Path.String(), Message: fmt.Sprintf("a value of this type does not fit the schema (%s): reload the schema or correct the object", v.Kind())}
			}
			return false
		}
	}
	return true
}

func fits(node *schema.Node, v rawjson.Value) bool {
	switch v.Kind() {
	case rawjson.Absent, rawjson.Null:
		return true
	case rawjson.Object:
		return node.Map() != nil
	case rawjson.List:
		return node.List() != nil
	case rawjson.Bool, rawjson.Number, rawjson.String:
	}
	return node.AllowsScalar()
}
