package fieldperm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// scope is what is known at one place of the walk.
type scope struct {
	node    *schema.Node
	path    Path
	chain   []verbs.Verb
	barrier int
	// beside are barriers that hold beside that of the chain: each takes its own verb.
	beside  []verbs.Verb
	emitted *binding
}

// identity is the same for places that are charged alike. A path alone would not do: a field's name may look
// like a path.
func (s *scope) identity() string {
	var b strings.Builder
	b.WriteString(s.path.String())
	for _, v := range slices.Concat(s.chain, s.beside) {
		b.WriteString(" " + v.String())
	}
	return b.String() + " " + strconv.Itoa(s.barrier)
}

// binding is a parameter's value that the path has emitted; the nearest of a name counts.
type binding struct {
	up          *binding
	name, value string
}

func (b *binding) lookup(name string) (string, bool) {
	for ; b != nil; b = b.up {
		if b.name == name {
			return b.value, true
		}
	}
	return "", false
}

func (b *binding) with(name, value string) *binding {
	if name == "" {
		return b
	}
	return &binding{up: b, name: name, value: value}
}

// visitor is what is done with a child of a scope.
type visitor func(d *differ, s scope, old, new rawjson.Value)

// enter returns the scope of a child node whose value went from old to new. emit is the scalar that
// the child's own parameter takes its value from; absent for none.
func (d *differ) enter(s scope, node *schema.Node, path Path, emitted *binding, old, new, emit rawjson.Value) scope {
	c := scope{node: node, path: path, chain: s.chain[:len(s.chain):len(s.chain)], barrier: s.barrier, beside: s.beside, emitted: emitted}
	if node.Emits() != "" && emit.IsScalar() {
		c.emitted = c.emitted.with(node.Emits(), spell(emit))
	}
	for _, p := range node.Permissions() {
		if p.Apart() {
			// Of what stands above only granular:* counts; a barrier above goes on holding.
			c.chain, c.barrier = c.chain[:1:1], min(c.barrier, 1)
		}
		// The verb without its parameter stands for all parameters. So it comes first, and an excluded
		// permission bars there: nothing more general than the verb counts, whatever the parameter.
		if p.MayBar() && d.bars(p, old, new) {
			c.barrier = len(c.chain)
		}
		if p.Beside() && d.uncovered.Has(p.Base()) {
			// The verbs of the object do not pass the barrier of the body, nor the body's that of the object.
			c.chain, c.beside = append(c.chain, p.Base()), append(c.beside[:len(c.beside):len(c.beside)], p.Base())
			continue
		}
		d.extend(&c, p.Base())
		if p.ParameterName() != "" {
			if v, ok := p.Parameterized(c.emitted.lookup); ok {
				d.extend(&c, v)
			}
		}
	}
	return c
}

// extend adds a verb to the chain. One that a set uncovers is a barrier.
func (d *differ) extend(s *scope, v verbs.Verb) {
	if d.uncovered.Has(v) {
		s.barrier = len(s.chain)
	}
	s.chain = append(s.chain, v)
}

// key enters the node below a member of an object.
func (d *differ) key(s scope, key []byte, old, new rawjson.Value, visit visitor) {
	child, field := s.node.Map().Lookup(key)
	name, emitted := string(key), s.emitted
	if field {
		d.child(s, child, s.path.Field(name), emitted, old, new, visit)
		return
	}
	d.child(s, child, s.path.Key(name), emitted.with(s.node.Emits(), name), old, new, visit)
}

// child enters a node. A scalar that emits its own value as a parameter is not modified: one value
// is removed and another added, and each needs a verb of its own.
func (d *differ) child(s scope, node *schema.Node, path Path, emitted *binding, old, new rawjson.Value, visit visitor) {
	if node.Emits() != "" && old.IsScalar() && new.IsScalar() && !d.same.Equal(old, new) {
		visit(d, d.enter(s, node, path, emitted, old, new, old), old, rawjson.Value{})
		visit(d, d.enter(s, node, path, emitted, old, new, new), rawjson.Value{}, new)
		return
	}
	emit := new
	if !new.IsScalar() {
		emit = old
	}
	visit(d, d.enter(s, node, path, emitted, old, new, emit), old, new)
}

// charge records that the node of s changed.
func (d *differ) charge(s scope, op Operation) {
	d.out = append(d.out, Requirement{Path: s.path, Operation: op, Chain: s.chain, Barrier: s.barrier})
	for _, v := range s.beside {
		d.out = append(d.out, Requirement{Path: s.path, Operation: op, Chain: []verbs.Verb{v}, Barrier: 0})
	}
}

// chargeHidden charges what a write through a version may change without showing it. For a lossy version that is, even for a
// write of nothing, the root, and each barrier that may be passed. A lossless version may have the field of a barrier under
// another name: there each change that may be one of that field is charged the barrier. A creation is charged as
// well, because it may set what another version guards.
func (d *differ) chargeHidden(kind *schema.Kind) {
	switch {
	case kind.Lossy():
		d.charge(d.root, Modified)
	case !slices.ContainsFunc(d.out, func(r Requirement) bool { return kind.MayHide(r.Path.top()) }):
		return
	}
	for _, v := range kind.HiddenBarriers(d.uncovered) {
		d.out = append(d.out, Requirement{Operation: Modified, Chain: []verbs.Verb{v}, Barrier: 0})
	}
	for i := range d.out {
		if d.out[i].Path.isRoot() {
			d.out[i].Instead = kind.Instead()
		}
	}
}

func operation(old, new rawjson.Value) Operation {
	switch {
	case old.IsAbsent():
		return Added
	case new.IsAbsent():
		return Removed
	default:
		return Modified
	}
}
