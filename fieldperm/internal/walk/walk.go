package walk

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// New returns the comparison of two objects of a kind. old is absent on CREATE. uncovered are the verbs that are barriers for this
// request, besides the barriers of the schema. The caller releases the comparison when it no longer needs it.
func New(ctx context.Context, kind *schema.Kind, uncovered schema.VerbSet, old, new rawjson.Value) *Differ {
	d, _ := differs.Get().(*Differ)
	// Each field is set by itself: a Differ is large, and one on the stack would make the stack of the request's goroutine grow.
	d.ctx, d.Kind, d.all, d.Create, d.Old, d.New = ctx, kind, uncovered, old.IsAbsent(), old, new
	d.Same.Verbatim = !kind.ShownInFull()
	d.startValues()
	d.Root = d.enterRoot(kind, old, new)
	return d
}

// differs pools released comparisons, which have nothing but memory: the next one reuses the stack of changes and the list of requirements.
var differs = sync.Pool{New: func() any { return &Differ{stack: stack{changed: make([]pair, 0, 8)}} }}

// mostKept is the capacity of the largest stack and of the largest list that the pool keeps.
const mostKept = 128

// Release gives the memory of the comparison back. The requirements stay valid.
func (d *Differ) Release() {
	if cap(d.spare) > cap(d.changed) && cap(d.spare) <= mostKept {
		d.changed = d.spare
	}
	out, changed := d.Out[:cap(d.Out)], d.changed[:cap(d.changed)]
	if len(out) > mostKept || len(changed) > mostKept {
		return
	}
	clear(out)
	clear(changed)
	*d = Differ{}
	d.Out, d.changed = out[:0], changed[:0]
	differs.Put(d)
}

// Differ is one comparison of two objects. It walks both texts in step. It skips parts with equal bytes, and looks at schema nodes only
// on the way to parts that differ. Some differences in bytes are not differences in value: order, escapes, the spelling of numbers, the keys of
// lists. Such parts are compared as values where they occur.
type Differ struct {
	ctx  context.Context
	Kind *schema.Kind
	// Uncovered are the barriers of sets for the current comparison, InStatus those in the status, and all those for any comparison.
	Uncovered, InStatus, all schema.VerbSet
	// Create: the object is new, and Old is absent.
	Create bool
	// Parts means that the changed scalars in a value that is charged as a whole are requirements too, with the verbs of the whole.
	Parts bool
	// Planted: see Apart.
	Planted  bool
	Old, New rawjson.Value
	// Root is the place of the whole object.
	Root Scope
	// Out are the requirements so far.
	Out []change.Requirement
	// Same compares old with new values, on the way down.
	Same rawjson.Comparison
	// keys compares the keys of items, wherever they stand.
	keys rawjson.Comparison
	// paths, names and chains share memory among the places of the walk.
	paths  fieldpath.Slab
	names  rawjson.Texts
	chains chains
	stack
	// keyDefaults are the scanned default values of keys that the run has met.
	keyDefaults []keyDefault
	owning
	// trail and index speed up the lookup of paths that owners name.
	trail trail
	index index
	// decoded are values that the API server may have written, each decoded once: see native.
	decoded map[rawjson.Value]any
	// looks counts visited nodes, so that the context is checked at intervals.
	looks uint
	// passed counts nodes that the API server writes, and defaults those with their declared default.
	passed, defaults int
	// whole means that the object is charged as a whole, because it is irregular.
	whole bool
	// Err ends the comparison.
	Err error
}

// Context returns the context of the request.
func (d *Differ) Context() context.Context { return d.ctx }

// Compare charges every changed value. It leaves changed owners to the caller.
func (d *Differ) Compare() { d.walk(d.Root, d.Old, d.New) }

// Finish returns the requirements, or the error that ended the comparison.
func (d *Differ) Finish() ([]change.Requirement, error) {
	d.look()
	if d.Err != nil {
		return nil, d.Err
	}
	if !d.whole {
		d.chargeUnseen()
		d.chargePlanted()
		d.chargeHidden()
	}
	if d.Create {
		return append([]change.Requirement{d.existence()}, d.Out...), nil
	}
	if len(d.Out) == 0 {
		return nil, nil
	}
	if out := d.Out; cap(out) > mostKept { // The pool does not keep such a list, so it needs no copy.
		d.Out = nil
		return out, nil
	}
	return slices.Clone(d.Out), nil
}

// existence returns the requirement of a new object, whatever fields it has (C5).
func (d *Differ) existence() change.Requirement {
	l := line{chain: slices.Clip(d.Root.chain), barrier: d.Root.barrier}
	l.add(verbs.Creation(), d.Uncovered)
	return change.Requirement{Path: d.Root.Path, Operation: change.Created, Chain: l.chain, Barrier: l.barrier}
}

// walk charges the differences at and below s.
func (d *Differ) walk(s Scope, old, new rawjson.Value) {
	if d.Stops() || d.Same.Same(old, new) || d.passes(s, old, new) || !d.fits(s, old, new) {
		return
	}
	if old.IsObject() && new.IsObject() && !s.Node.Map().Atomic() && d.membersInStep(s, old, new) {
		return
	}
	switch oldForm, newForm := form(s, old, new), form(s, new, old); {
	case oldForm == formLeaf && newForm == formLeaf, oldForm == formNone && newForm == formLeaf, oldForm == formLeaf && newForm == formNone:
		if !d.Same.Equal(old, new) {
			d.remember(s.Path, old, new)
			d.Charge(s, operation(old, new))
			d.barriersWithin(s, old, new)
		}
	case oldForm == newForm, oldForm == formNone, newForm == formNone:
		if oldForm == formMap || newForm == formMap {
			d.members(s, old, new)
		} else {
			d.items(s, old, new)
		}
	default:
		// The old value disappears, and a value of another form appears.
		d.walk(s, old, rawjson.Value{})
		d.walk(s, rawjson.Value{}, new)
	}
}

func walk(d *Differ, s Scope, old, new rawjson.Value) { d.walk(s, old, new) }

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
func form(s Scope, v, other rawjson.Value) shape {
	switch {
	case v.IsAbsent():
		return formNone
	case v.IsObject() && !s.Node.Map().Atomic() && (other.IsObject() || !v.IsEmpty()):
		return formMap
	case v.IsList() && !s.Node.List().Atomic() && (other.IsList() || !v.IsEmpty()):
		return formList
	default:
		return formLeaf
	}
}

// passes reports whether the change needs no verb here: the API server makes it (D7, D13), it is the identity of a new object or a
// declared default (C5), or it is left to the comparison of owners (D8).
func (d *Differ) passes(s Scope, old, new rawjson.Value) bool {
	switch s.Node.Role() {
	case schema.RoleServerWritten:
		if d.Create && d.isChosen(s, new) {
			return false
		}
		d.passed++
		return true
	case schema.RoleOwnership:
		d.passed++
		d.Owned = Owned{Scope: s, Old: old, New: new}
		return true
	case schema.RoleIdentity:
		if d.Create {
			d.passed++
			return true
		}
	case schema.RoleNone:
	}
	if w := s.Node.Written(); w != nil && d.writtenByServer(w, s.Barred(), old, new) {
		d.passed++
		return true
	}
	if d.Create && isDefault(s.Node.Default(), new) {
		d.defaults++
		return true
	}
	return false
}

// isChosen reports whether the client chose the generation of a new object. The API server begins with 1 where it counts changes. Elsewhere
// it leaves the field absent, or stores what the client sends.
func (d *Differ) isChosen(s Scope, new rawjson.Value) bool {
	if new.IsAbsent() || new.Kind() == rawjson.Null || s.Path.String() != ".metadata.generation" {
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

// fits reports whether the values have a form that the node allows. If not, Diff ends in an error, unless the values are equal.
func (d *Differ) fits(s Scope, values ...rawjson.Value) bool {
	for _, v := range values {
		if !fits(s.Node, v) {
			if len(values) != 2 || !d.Same.Equal(values[0], values[1]) {
				d.Err = &change.InvalidObjectError{Path: s.Path.String(), Message: fmt.Sprintf("a value of this type does not fit the schema (%s): reload the schema or correct the object", v.Kind())}
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
