package fieldperm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Diff returns the changes from old to new and the verbs that cover each. Both are JSON objects of the kind. old is nil on CREATE; then
// every field that is present counts as changed (C5). uncovered are the verbs that are barriers for this request, besides the barriers of
// the schema.
//
// Fail-closed law (D10): if Diff returns no requirement, the objects are equal as JSON values, except for the changes that D7 and D8
// leave free.
//
// Errors: *InvalidObjectError if an object is not JSON or a changed part does not fit the schema; the context's error if the context ends
// before the comparison.
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

// DiffValues is Diff for objects that are already scanned; old is absent on CREATE. The result refers to the bytes of the text, so the
// caller may release the documents but must not change the text.
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
		// An object with only a name appeared as well, and may have an effect. The marker alone must not be enough for it.
		d.charge(d.root, Added)
	}
	d.chargeHidden(kind)
	return d.out, nil
}

// differs pools finished differs, so that the next run can reuse the stack of changes.
var differs = sync.Pool{New: func() any { return &differ{changed: make([]change, 0, 8)} }}

// mostKept is the capacity of the largest stack of changes that the pool keeps.
const mostKept = 1024

func (d *differ) release() {
	if cap(d.changed) <= mostKept {
		clear(d.changed[:cap(d.changed)])
		*d = differ{changed: d.changed[:0]}
		differs.Put(d)
	}
}

// InvalidObjectError is the error for an object that is not JSON or does not fit its schema. It is not a denial.
type InvalidObjectError struct {
	// Path is the place of the fault, "" for the object as a whole.
	Path string
	// Message describes the fault and ends with the cure.
	Message string
}

func (e *InvalidObjectError) Error() string {
	if e.Path == "" {
		return "object: " + e.Message
	}
	return "object: " + e.Path + ": " + e.Message
}

// differ is one run of Diff. It walks both texts in step. It skips parts with equal bytes, and looks at schema nodes only on the way to
// parts that differ. Some differences in bytes are not differences in value: order, escapes, the spelling of numbers, names that occur
// twice, the keys of lists. Such parts are compared as values where they occur.
type differ struct {
	ctx  context.Context
	kind *schema.Kind
	// uncovered are the barriers of sets for the current comparison, inStatus those in the status, and all those for any comparison.
	uncovered, inStatus, all schema.VerbSet
	create                   bool
	old, new                 rawjson.Value
	root                     scope
	out                      []Requirement
	// same compares old with new values, on the way down.
	same rawjson.Comparison
	// keys compares the keys of items, wherever they stand.
	keys rawjson.Comparison
	// changed is a stack of the members that differ, for all levels of the walk.
	changed []change
	// defaults are the scanned default values of keys that the run has met.
	defaults []keyDefault
	// owned is set when the walk meets a change of managedFields. Until then its scope has no node.
	owned ownership
	// owning is true while owners are compared. The value then changes in a later request, the next apply of its owner. So a conditional
	// barrier holds always.
	owning bool
	// leaves are the paths of the first scalars that appeared or changed.
	leaves    [mostLeaves]fieldpath.Path
	leafCount int
	// trail and index speed up the lookup of paths that owners name.
	trail      trail
	index      index
	conditions conditions
	// looks counts visited nodes, so that the context is checked at intervals.
	looks uint
	// passed counts nodes that were skipped because of their role.
	passed int
	err    error
}

// walk charges the differences at and below s.
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
		// The old value disappears, and a value of another form appears.
		d.walk(s, old, rawjson.Value{})
		d.walk(s, rawjson.Value{}, new)
	}
}

func walk(d *differ, s scope, old, new rawjson.Value) { d.walk(s, old, new) }

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

// passes reports whether the change needs no verb here: the API server makes it (D7, D13), it is the identity of a new object or a
// declared default (C5), or it is left to the comparison of owners (D8).
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
