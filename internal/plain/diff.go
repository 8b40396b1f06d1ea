package plain

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

// Diff returns what changed from old to new and which verbs cover it. Both are JSON objects of the
// kind; old is nil on CREATE, where every node present counts as changed (C5). uncovered are the
// verbs that are barriers for this request besides the schema's own.
//
// Fail-closed law (D10): if Diff returns no requirement, the objects are equal as JSON values but
// for what D7 and D8 leave free.
//
// Errors: *InvalidObjectError if an object is no JSON or a changed part does not fit the schema.
func Diff(old, new []byte, kind *schema.Kind, uncovered schema.VerbSet) ([]fieldperm.Requirement, error) {
	d := &differ{uncovered: uncovered, create: old == nil}
	var err error
	if !d.create {
		if d.old, err = decode(old); err != nil {
			return nil, err
		}
	}
	if d.new, err = decode(new); err != nil {
		return nil, err
	}
	root := d.enter(scope{barrier: -1}, kind.Root, fieldperm.Path{}, nil, d.old, d.new, nil)
	d.root = root
	d.walk(root, d.old, d.new)
	d.finishOwnership()
	if d.err != nil {
		return nil, d.err
	}
	if d.create && len(d.out) == 0 {
		// An object of nothing but its name did appear, and may mean much: the marker alone grants nothing.
		d.charge(root, fieldperm.Added)
	}
	if kind.Lossy() {
		// What this version does not show may be lost or changed all the same, even by a write of nothing.
		d.charge(root, fieldperm.Modified)
	}
	return d.out, nil
}

// differ is one run of Diff, in its plain form: it decodes both objects and compares them node by
// node, to be easily read and to be the reference for any faster form.
type differ struct {
	uncovered schema.VerbSet
	create    bool
	old, new  *value
	root      scope
	out       []fieldperm.Requirement
	// owned is the place of managedFields once the walk has met a change there.
	owned *ownership
	// indices are the items of lists by key, for the paths of owners.
	indices map[*value]map[string]*value
	// passed counts nodes that were passed over because of their role.
	passed int
	err    error
}

// walk charges what differs at or below s. An absent value is nil.
func (d *differ) walk(s scope, old, new *value) {
	if d.err != nil || equal(old, new) {
		return
	}
	if d.passes(s, old, new) || !d.fits(s, old) || !d.fits(s, new) {
		return
	}
	switch oldForm, newForm := d.form(s, old, new), d.form(s, new, old); {
	case oldForm == formLeaf && newForm == formLeaf, oldForm == formNone && newForm == formLeaf, oldForm == formLeaf && newForm == formNone:
		d.charge(s, operation(old, new))
		d.barriersWithin(s, old, new)
	case oldForm == newForm, oldForm == formNone, newForm == formNone:
		if oldForm == formMap || newForm == formMap {
			d.members(s, old, new)
		} else {
			d.items(s, old, new)
		}
	default:
		// What was there disappears, and something of another form appears.
		d.walk(s, old, nil)
		d.walk(s, nil, new)
	}
}

// form is how a value takes part in the comparison.
type form byte

const (
	formNone form = iota
	// formLeaf is charged as a whole: scalars, null, what is empty, what is atomic.
	formLeaf
	formMap
	formList
)

// form returns how v is compared with other. An empty container is a leaf unless it is compared with
// one of its kind.
func (d *differ) form(s scope, v, other *value) form {
	switch {
	case v == nil:
		return formNone
	case v.kind == kindObject && !s.node.Map().Atomic() && !v.duplicate && (len(v.members) > 0 || isObject(other)):
		return formMap
	case v.kind == kindList && !s.node.List().Atomic() && (len(v.items) > 0 || isList(other)):
		return formList
	default:
		return formLeaf
	}
}

// passes reports whether the change is the API server's own (D7), the identity of a new object or a
// declared default (C5), or kept for the comparison of owners (D8).
func (d *differ) passes(s scope, old, new *value) bool {
	switch s.node.Role() {
	case schema.RoleServerWritten:
		d.passed++
		return true
	case schema.RoleOwnership:
		d.passed++
		d.owned = &ownership{scope: s, old: old, new: new}
		return true
	case schema.RoleIdentity:
		if d.create {
			d.passed++
			return true
		}
	case schema.RoleNone:
	}
	if raw := s.node.Default(); d.create && raw != nil {
		fallback, err := decodeAny(raw)
		return err == nil && equal(fallback, new)
	}
	return false
}

// fits reports whether the value is of a form that the node allows; else Diff ends in an error.
func (d *differ) fits(s scope, v *value) bool {
	if v == nil || v.kind == kindNull ||
		v.kind == kindObject && s.node.Map() != nil ||
		v.kind == kindList && s.node.List() != nil ||
		v.isScalar() && s.node.AllowsScalar() {
		return true
	}
	d.err = &fieldperm.InvalidObjectError{Path: s.path.String(), Message: fmt.Sprintf("a value of this type does not fit the schema (%s): reload the schema or correct the object", v.kindName())}
	return false
}

func (v *value) kindName() string {
	return [...]string{"null", "boolean", "number", "string", "list", "object"}[v.kind]
}

// members compares objects key by key over the union of their keys (D1). One side may be absent.
func (d *differ) members(s scope, old, new *value) {
	charged, passed := len(d.out), d.passed
	for _, name := range unionKeys(old, new) {
		d.key(s, name, old.get(name), new.get(name), d.walk)
	}
	// Below an object that appears with nothing but defaults nothing was charged, but the object did
	// appear: like an empty one it is a leaf. Only around what has a role (metadata) it is free.
	if len(d.out) == charged && d.passed == passed && old == nil && d.err == nil && !(d.create && string(s.node.Default()) == "{}") {
		d.charge(s, fieldperm.Added)
	}
}

func unionKeys(old, new *value) []string {
	keys := map[string]struct{}{}
	for _, v := range []*value{old, new} {
		if v != nil && v.kind == kindObject {
			for name := range v.index {
				keys[name] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
