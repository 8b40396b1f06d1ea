package fieldperm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// Diff returns what changed from old to new and which verbs cover it. Both are JSON objects of the
// kind; old is nil on CREATE, where every node present counts as changed (C5). uncovered are the
// verbs that are barriers for this request besides the schema's own.
//
// Fail-closed law (D10): if Diff returns no requirement, the objects are equal as JSON values but
// for what D7 and D8 leave free.
//
// Errors: *InvalidObjectError if an object is no JSON or a changed part does not fit the schema; that of the context
// if it ends before the comparison does.
func Diff(ctx context.Context, old, new []byte, kind *schema.Kind, uncovered schema.VerbSet) ([]Requirement, error) {
	var was rawjson.Value
	if old != nil {
		doc, err := scan(old)
		if err != nil {
			return nil, err
		}
		defer doc.Release()
		was = doc.Root()
	}
	doc, err := scan(new)
	if err != nil {
		return nil, err
	}
	defer doc.Release()
	return DiffValues(ctx, was, doc.Root(), kind, uncovered)
}

func scan(raw []byte) (*rawjson.Document, error) {
	doc, err := rawjson.Scan(raw)
	switch {
	case errors.Is(err, rawjson.ErrMore):
		return nil, &InvalidObjectError{Message: "is followed by more JSON: send one object"}
	case err != nil:
		return nil, &InvalidObjectError{Message: fmt.Sprintf("is no JSON: %v: send the object as an API server does", err)}
	}
	return doc, nil
}

// DiffValues is Diff of objects that have been scanned; old is absent on CREATE. The result refers to the
// bytes of the text, not to what Release takes back.
func DiffValues(ctx context.Context, old, new rawjson.Value, kind *schema.Kind, uncovered schema.VerbSet) ([]Requirement, error) {
	if !old.IsAbsent() && !old.IsObject() || !new.IsObject() {
		return nil, &InvalidObjectError{Message: "is no JSON object: send the object as an API server does"}
	}
	if err := ctx.Err(); err != nil {
		return nil, stopped(err)
	}
	d, _ := differs.Get().(*differ)
	*d = differ{ctx: ctx, kind: kind, uncovered: uncovered.ForValues(), all: uncovered, create: old.IsAbsent(), old: old, new: new, changed: d.changed[:0]}
	defer d.release()
	d.root = d.enterRoot(kind, old, new)
	d.walk(d.root, old, new)
	d.chargeScale()
	d.finishOwnership()
	d.look()
	if d.err != nil {
		return nil, d.err
	}
	if d.create && len(d.out) == 0 {
		// An object of nothing but its name did appear, and may mean much: the marker alone grants nothing.
		d.charge(d.root, Added)
	}
	d.chargeHidden(kind)
	return d.out, nil
}

// differs are those whose run is over: a stack of changes is of use to the next.
var differs = sync.Pool{New: func() any { return &differ{changed: make([]change, 0, 8)} }}

// mostKept is the largest stack of changes that is kept.
const mostKept = 1024

func (d *differ) release() {
	if cap(d.changed) <= mostKept {
		clear(d.changed[:cap(d.changed)])
		*d = differ{changed: d.changed[:0]}
		differs.Put(d)
	}
}

// InvalidObjectError says that an object is no JSON or does not fit its schema. It is not a denial.
type InvalidObjectError struct {
	// Path is where, "" for the object as a whole.
	Path string
	// Message says what is wrong and ends with the cure.
	Message string
}

func (e *InvalidObjectError) Error() string {
	if e.Path == "" {
		return "object: " + e.Message
	}
	return "object: " + e.Path + ": " + e.Message
}

// differ is one run of Diff. It walks both texts in step: what is byte for byte the same is passed over, and
// schema nodes are looked at only on the way to what is not. What bytes cannot tell — order, escapes, the
// spelling of numbers, names that occur twice, the keys of lists — is compared as values where it is met.
type differ struct {
	ctx  context.Context
	kind *schema.Kind
	// uncovered are the barriers of sets for what is compared now, and inStatus those in the status; all are those for anything.
	uncovered, inStatus, all schema.VerbSet
	create                   bool
	old, new                 rawjson.Value
	root                     scope
	out                      []Requirement
	// same compares old with new values, on the way down.
	same rawjson.Comparison
	// keys compares the keys of items, wherever they stand.
	keys rawjson.Comparison
	// changed is a stack of members that differ, for each level of the walk.
	changed []change
	// defaults are the declared defaults of keys that have been met.
	defaults []keyDefault
	// owned is the place of managedFields once the walk has met a change there; else its scope has no node.
	owned ownership
	// owning says that owners are compared. What becomes of a value is for the next apply of its owner to say then, so that a
	// barrier that holds at times holds.
	owning bool
	// leaves are the first scalars that appeared or changed.
	leaves    [mostLeaves]Path
	leafCount int
	// trail and index are for the paths of owners.
	trail      trail
	index      index
	conditions conditions
	// looks counts what has been gone through, so that the context is asked at intervals.
	looks uint
	// passed counts nodes that were passed over because of their role.
	passed int
	err    error
}

// walk charges what differs at or below s.
func (d *differ) walk(s scope, old, new rawjson.Value) {
	if d.stops() || d.same.Same(old, new) || d.passes(s, old, new) || !d.fits(s, old, new) {
		return
	}
	if old.IsObject() && new.IsObject() && !s.node.Map().Atomic() && d.membersInStep(s, old, new) {
		return
	}
	switch oldForm, newForm := form(s, old, new), form(s, new, old); {
	case oldForm == formLeaf && newForm == formLeaf, oldForm == formNone && newForm == formLeaf, oldForm == formLeaf && newForm == formNone:
		if !d.same.Equal(old, new) {
			d.remember(s.path, old, new)
			d.charge(s, operation(old, new))
			d.barriersWithin(s, old, new)
		}
	case oldForm == newForm, oldForm == formNone, newForm == formNone:
		if oldForm == formMap || newForm == formMap {
			d.members(s, old, new)
		} else {
			d.items(s, old, new)
		}
	default:
		// What was there disappears, and something of another form appears.
		d.walk(s, old, rawjson.Value{})
		d.walk(s, rawjson.Value{}, new)
	}
}

func walk(d *differ, s scope, old, new rawjson.Value) { d.walk(s, old, new) }

// shape is how a value takes part in the comparison.
type shape byte

const (
	formNone shape = iota
	// formLeaf is charged as a whole: scalars, null, what is empty, what is atomic.
	formLeaf
	formMap
	formList
)

// form returns how v is compared with other. An empty container is a leaf unless it is compared with
// one of its kind.
func form(s scope, v, other rawjson.Value) shape {
	switch {
	case v.IsAbsent():
		return formNone
	case v.IsObject() && !s.node.Map().Atomic() && (other.IsObject() || !v.IsEmpty()) && !v.Ambiguous():
		return formMap
	case v.IsList() && !s.node.List().Atomic() && (other.IsList() || !v.IsEmpty()):
		return formList
	default:
		return formLeaf
	}
}

// passes reports whether the change is the API server's own (D7, D13), the identity of a new object or a
// declared default (C5), or kept for the comparison of owners (D8).
func (d *differ) passes(s scope, old, new rawjson.Value) bool {
	switch s.node.Role() {
	case schema.RoleServerWritten:
		d.passed++
		return true
	case schema.RoleOwnership:
		d.passed++
		d.owned = ownership{scope: s, old: old, new: new}
		return true
	case schema.RoleIdentity:
		if d.create {
			d.passed++
			return true
		}
	case schema.RoleNone:
	}
	if w := s.node.Written(); w != nil && d.writtenByServer(w, s.barred(), old, new) {
		d.passed++
		return true
	}
	return d.create && isDefault(s.node.Default(), new)
}

// isDefault reports whether v is the default, given as JSON; nil for none.
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

// fits reports whether the values are of a form that the node allows; else Diff ends in an error, unless
// nothing changed.
func (d *differ) fits(s scope, values ...rawjson.Value) bool {
	for _, v := range values {
		if !fits(s.node, v) {
			if len(values) != 2 || !d.same.Equal(values[0], values[1]) {
				d.err = &InvalidObjectError{Path: s.path.String(), Message: fmt.Sprintf("a value of this type does not fit the schema (%s): reload the schema or correct the object", v.Kind())}
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
