package fieldperm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// scope is the state of the walk at one place.
type scope struct {
	node *schema.Node
	path fieldpath.Path
	line
	// others are the lines through the trees of the other objects that the place becomes a part of (schema.Node.Trees).
	others  []line
	emitted *binding
	// inStatus reports whether the place is in the status.
	inStatus bool
}

// line is the chain of verbs to a place in one tree.
type line struct {
	chain   []verbs.Verb
	barrier int
	// apart means that of the verbs above only granular:* counts.
	apart bool
}

// strict reports whether the line must be covered by itself, so that verbs of other trees do not count. A barrier at the root belongs to
// every tree and does not make a line strict.
func (l *line) strict() bool { return l.barrier > 0 || l.apart }

// identity returns a text that is equal for places that are charged alike. A path alone is not enough, because the name of a field may
// look like a path.
func (s *scope) identity() string {
	var b strings.Builder
	b.WriteString(s.path.String())
	for _, l := range s.lines() {
		for _, v := range l.chain {
			b.WriteString(" " + v.String())
		}
		b.WriteString(" " + strconv.Itoa(l.barrier))
	}
	return b.String()
}

// binding is a value for a parameter, emitted on the path. The nearest binding of a name counts.
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

// enterRoot returns the scope of the object itself.
func (d *differ) enterRoot(kind *schema.Kind, old, new rawjson.Value) scope {
	return d.enter(scope{line: line{barrier: -1}}, kind.Root, fieldpath.Path{}, nil, old, new, rawjson.Value{})
}

// visitor is called with the scope and the values of a child.
type visitor func(d *differ, s scope, old, new rawjson.Value)

// enter returns the scope of a child node whose value went from old to new. emit is the scalar from which the child's own parameter takes
// its value; absent for none.
func (d *differ) enter(s scope, node *schema.Node, path fieldpath.Path, emitted *binding, old, new, emit rawjson.Value) scope {
	c := scope{node: node, path: path, line: s.line, others: s.others, emitted: emitted}
	if node.Emits() != "" && emit.IsScalar() {
		c.emitted = c.emitted.with(node.Emits(), emit.ScalarText())
	}
	c.inStatus = s.inStatus || d.inStatus != nil && path.IsTop("status")
	d.extendLines(&c, old, new)
	if c.inStatus && !s.inStatus {
		d.enterStatus(&c)
	}
	return c
}

// extendLines extends each line of a scope to the node of the scope, whose value went from old to new.
func (d *differ) extendLines(c *scope, old, new rawjson.Value) {
	trees, uncovered := c.node.Trees(), d.uncoveredAt(c)
	if trees == nil && c.others == nil {
		c.line = d.extend(c.line, uncovered, c.node.Permissions(), c.emitted, old, new)
		return
	}
	c.others = slices.Clone(c.others)
	for len(c.others) < len(trees)-1 {
		// The other trees start at the root.
		c.others = append(c.others, d.root.line)
	}
	of := func(tree int) []*schema.Permission {
		if trees == nil {
			return c.node.Permissions()
		}
		return trees[tree]
	}
	c.line = d.extend(c.line, uncovered, of(0), c.emitted, old, new)
	for i := range c.others {
		c.others[i] = d.extend(c.others[i], uncovered, of(i+1), c.emitted, old, new)
	}
}

// enterStatus puts a barrier at the root into force that holds only in the status. Its verb stands above the status in the chain.
func (d *differ) enterStatus(s *scope) {
	if !d.inStatus.Has(verbs.All()) {
		return
	}
	s.barrier, s.others = max(s.barrier, 0), slices.Clone(s.others)
	for i := range s.others {
		s.others[i].barrier = max(s.others[i].barrier, 0)
	}
}

// extend returns the line with the permissions of the next node added. The value of that node went from old to new.
func (d *differ) extend(l line, uncovered schema.VerbSet, permissions []*schema.Permission, emitted *binding, old, new rawjson.Value) line {
	l.chain = l.chain[:len(l.chain):len(l.chain)]
	for _, p := range permissions {
		if p.Apart() {
			// Of the verbs above only granular:* counts. A barrier above still holds.
			l.chain, l.barrier, l.apart = l.chain[:1:1], min(l.barrier, 1), true
		}
		// The verb without its parameter covers all parameters, so it comes first. An excluded permission is a barrier there: no more
		// general verb counts, whatever the parameter is.
		if p.MayBar() && d.bars(p, old, new) {
			l.barrier = len(l.chain)
		}
		l.add(p.Base(), uncovered)
		if p.ParameterName() != "" {
			if v, ok := p.Parameterized(emitted.lookup); ok {
				l.add(v, uncovered)
			}
		}
	}
	return l
}

// uncoveredAt returns the barriers of sets that hold at a place for the current comparison.
func (d *differ) uncoveredAt(s *scope) schema.VerbSet {
	if d.inStatus != nil && s.inStatus {
		return d.inStatus
	}
	return d.uncovered
}

// add adds a verb to the chain. If a set uncovers the verb, it is a barrier.
func (l *line) add(v verbs.Verb, uncovered schema.VerbSet) {
	if uncovered.Has(v) {
		l.barrier = len(l.chain)
	}
	l.chain = append(l.chain, v)
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

// child enters a node. If a scalar emits its own value as a parameter, a change counts as one value removed and another added, and each
// needs its own verb.
func (d *differ) child(s scope, node *schema.Node, path fieldpath.Path, emitted *binding, old, new rawjson.Value, visit visitor) {
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

// charge records that the node of s changed. If the node is part of other objects as well, each barrier needs a verb from that barrier
// on, in its own tree. Without barriers a verb of any tree is enough.
func (d *differ) charge(s scope, op Operation) {
	if s.others == nil {
		d.require(s.path, op, s.line)
		return
	}
	all, isStrict := s.line, false
	for _, l := range s.lines() {
		if l.strict() {
			d.require(s.path, op, l)
			isStrict = true
		}
		for _, v := range l.chain {
			if !slices.Contains(all.chain, v) {
				all.chain = append(all.chain[:len(all.chain):len(all.chain)], v)
			}
		}
	}
	if !isStrict {
		d.require(s.path, op, all)
	}
}

func (d *differ) require(path fieldpath.Path, op Operation, l line) {
	d.out = append(d.out, Requirement{Path: path, Operation: op, Chain: l.chain, Barrier: l.barrier})
}

// lines returns the line of the place in each tree.
func (s *scope) lines() []line { return append([]line{s.line}, s.others...) }

// barred reports whether any barrier holds for the place.
func (s *scope) barred() bool {
	return s.barrier >= 0 || slices.ContainsFunc(s.others, func(l line) bool { return l.barrier >= 0 })
}

// guards reports whether the place has a barrier of its own, or stands apart, inside the scope above.
func (s *scope) guards(above scope) bool {
	if s.node.StandsApart() || s.barrier > above.barrier {
		return true
	}
	for i := range s.others {
		was := 0
		if i < len(above.others) {
			was = above.others[i].barrier
		}
		if s.others[i].barrier > was {
			return true
		}
	}
	return false
}

// chargeHidden charges what a write through a version may change without showing it. For a lossy version it charges the root and each
// barrier that the write may pass, even if nothing changed. In a lossless version the field of a barrier may have another name, so each
// change that may be a change of that field is charged with the barrier. A creation is charged as well, because it may set a field that
// another version guards.
func (d *differ) chargeHidden(kind *schema.Kind) {
	switch {
	case kind.Lossy():
		d.charge(d.root, Modified)
	case !slices.ContainsFunc(d.out, func(r Requirement) bool { return kind.MayHide(r.Path.Top()) }):
		return
	}
	uncovered := d.uncovered
	if d.inStatus != nil && slices.ContainsFunc(d.out, func(r Requirement) bool {
		return r.Operation == Ownership && (r.Path.IsRoot() || r.Path.Top() == "status")
	}) {
		uncovered = d.inStatus
	}
	for _, v := range kind.HiddenBarriers(uncovered) {
		d.out = append(d.out, Requirement{Operation: Modified, Chain: []verbs.Verb{v}, Barrier: 0})
	}
	for i := range d.out {
		if d.out[i].Path.IsRoot() {
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
