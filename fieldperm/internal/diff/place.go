package diff

import (
	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Change is one change between two objects.
type Change struct {
	// Place lasts until the report of the change returns.
	Place     *Place
	Operation change.Operation
	// Part means that the place is inside a whole, and one of its values has no parts.
	Part bool
}

// Place is a place in both objects, reached through the places above it.
type Place struct {
	// Up is the place above, nil for the object itself.
	Up   *Place
	Node *schema.Node
	Path fieldpath.Path
	// Old and New are the values at the place, absent for none.
	Old, New rawjson.Value
	// Whole is the outermost place above whose value has changed as a whole, nil if there is none.
	Whole *Place
	// Derived means that the API server makes the changes at and below the place because another field changes (D13).
	Derived bool
	// InStatus means that the place is in the status.
	InStatus bool
	// waiting is how many parts of the place have still to be visited.
	waiting uint32
	// ID is another one for each place of a comparison, and never 0. Depth is the number of places above.
	ID    uint64
	Depth int
	bound *binding
	// below is memory for the places directly below, which are visited one after the other, and changed for the parts that differ.
	below   *Place
	changed []pair
}

// binding is a value for a parameter, bound on the path. The nearest binding of a name counts.
type binding struct {
	up          *binding
	name, value string
}

func (b *binding) with(name, value string) *binding {
	if name == "" {
		return b
	}
	return &binding{up: b, name: name, value: value}
}

// Parameter returns the value that the path has for a parameter.
func (p *Place) Parameter(name string) (string, bool) {
	for b := p.bound; b != nil; b = b.up {
		if b.name == name {
			return b.value, true
		}
	}
	return "", false
}

// Waiting returns how many parts of the places above may still change.
func (p *Place) Waiting() int {
	n := 0
	for p = p.Up; p != nil; p = p.Up {
		n += int(p.waiting)
	}
	return n
}

// kept returns a copy of the place that lasts. The places above must last too.
func (p *Place) kept() *Place {
	out := *p
	out.below, out.changed, out.waiting = nil, nil, 0
	return &out
}

// start makes p the place of a whole object.
func (d *Differ) start(p *Place, kind *schema.Kind, old, new rawjson.Value) {
	d.places++
	*p = Place{Node: kind.Root, Old: old, New: new, ID: d.places, below: p.below, changed: p.changed}
}

// visitor is called with a child of a place, and the values that are compared there.
type visitor func(d *Differ, p *Place, old, new rawjson.Value)

// enter returns the place of a child whose value went from old to new. emit is the scalar from which the child's own parameter takes its value;
// absent for none.
func (d *Differ) enter(up *Place, node *schema.Node, path fieldpath.Path, bound *binding, old, new, emit rawjson.Value) *Place {
	p := up.below
	if p == nil {
		p = &Place{}
		up.below = p
	}
	d.places++
	*p = Place{
		Up: up, Node: node, Path: path, Old: old, New: new, Whole: up.Whole, Derived: up.Derived, InStatus: up.InStatus || path.IsTop("status"),
		ID: d.places, Depth: up.Depth + 1, bound: bound, below: p.below, changed: p.changed,
	}
	if node.Emits() != "" && emit.IsScalar() {
		p.bound = bound.with(node.Emits(), emit.ScalarText())
	}
	return p
}

// key visits the child below a member of an object.
func (d *Differ) key(p *Place, key []byte, old, new rawjson.Value, visit visitor) {
	child, field := p.Node.Map().Lookup(key)
	name := d.names.Of(key)
	if field {
		d.child(p, child, d.paths.Field(p.Path, name), p.bound, old, new, visit)
		return
	}
	d.child(p, child, d.paths.Key(p.Path, name), p.bound.with(p.Node.Emits(), name), old, new, visit)
}

// child visits a child. If a scalar is its own parameter, a change counts as one value removed and another added, and each has its own parameter.
func (d *Differ) child(p *Place, node *schema.Node, path fieldpath.Path, bound *binding, old, new rawjson.Value, visit visitor) {
	if node.Emits() != "" && old.IsScalar() && new.IsScalar() && !d.Same.Equal(old, new) {
		visit(d, d.enter(p, node, path, bound, old, new, old), old, rawjson.Value{})
		visit(d, d.enter(p, node, path, bound, old, new, new), rawjson.Value{}, new)
		return
	}
	emit := new
	if !new.IsScalar() {
		emit = old
	}
	visit(d, d.enter(p, node, path, bound, old, new, emit), old, new)
}

// OperationOf returns the change of a value that went from old to new.
func OperationOf(old, new rawjson.Value) change.Operation {
	switch {
	case old.IsAbsent():
		return change.Added
	case new.IsAbsent():
		return change.Removed
	default:
		return change.Modified
	}
}
