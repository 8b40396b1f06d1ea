package walk

import (
	"slices"
	"strconv"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Scope is the state of the walk at one place.
type Scope struct {
	Node *schema.Node
	Path fieldpath.Path
	line
	// others are the lines through the trees of the other objects that the place becomes a part of (schema.Node.Trees).
	others []line
	// demands are the barriers beside the permissions of the place, and of those above it (schema.Permission.BarsBeside).
	demands []demand
	emitted *binding
	// whole is the line of the value around the place that is charged as a whole, nil for none. It is set for Differ.Parts only.
	whole *line
	// InStatus reports whether the place is in the status.
	InStatus bool
}

// line is the chain of verbs to a place in one tree.
type line struct {
	chain   []verbs.Verb
	barrier int
}

// demand is a barrier beside the chain of a place. Its own verbs pass it, and those that the chain has below it.
type demand struct {
	verbs []verbs.Verb
	// from is the length of the chain at the barrier.
	from int
}

// strict reports whether the line must be covered by itself, so that verbs of other trees do not count. A barrier at the root belongs to
// every tree and does not make a line strict.
func (l *line) strict() bool { return l.barrier > 0 }

// ScopeOf returns the place of a requirement, for which only the path and the verbs are known. It can be charged, but not entered.
func ScopeOf(r *change.Requirement) Scope {
	return Scope{Path: r.Path, line: line{chain: r.Chain, barrier: r.Barrier}}
}

// AppendIdentity appends a text that is equal for places that are charged alike. A path alone is not enough, because the name of a field may
// look like a path.
func (s *Scope) AppendIdentity(out []byte, paths *fieldpath.Digests) []byte {
	out = paths.Append(out, s.Path)
	out = s.line.appendIdentity(out)
	for i := range s.others {
		out = s.others[i].appendIdentity(out)
	}
	for _, beside := range s.demands {
		l := line{chain: beside.verbs, barrier: beside.from}
		out = l.appendIdentity(out)
	}
	return out
}

func (l *line) appendIdentity(out []byte) []byte {
	for _, v := range l.chain {
		out = append(append(out, ' '), v.String()...)
	}
	return strconv.AppendInt(append(out, ' '), int64(l.barrier), 10)
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
func (d *Differ) enterRoot(kind *schema.Kind, old, new rawjson.Value) Scope {
	return d.enter(Scope{line: line{barrier: -1}}, kind.Root, fieldpath.Path{}, nil, old, new, rawjson.Value{})
}

// Visitor is called with the scope and the values of a child.
type Visitor func(d *Differ, s Scope, old, new rawjson.Value)

// enter returns the scope of a child node whose value went from old to new. emit is the scalar from which the child's own parameter takes
// its value; absent for none.
func (d *Differ) enter(s Scope, node *schema.Node, path fieldpath.Path, emitted *binding, old, new, emit rawjson.Value) Scope {
	c := Scope{Node: node, Path: path, line: s.line, others: s.others, demands: s.demands, whole: s.whole, emitted: emitted}
	if node.Emits() != "" && emit.IsScalar() {
		c.emitted = c.emitted.with(node.Emits(), emit.ScalarText())
	}
	c.InStatus = s.InStatus || d.InStatus != nil && path.IsTop("status")
	d.extendLines(&c, old, new)
	if c.InStatus && !s.InStatus {
		d.enterStatus(&c)
	}
	return c
}

// extendLines extends each line of a scope to the node of the scope, whose value went from old to new.
func (d *Differ) extendLines(c *Scope, old, new rawjson.Value) {
	trees, uncovered := c.Node.Trees(), d.UncoveredAt(c)
	if trees == nil && c.others == nil {
		c.line = d.extend(c.line, c.Node.Permissions(), uncovered, c.emitted, old, new)
	} else {
		d.extendInTrees(c, trees, uncovered, old, new)
	}
	for _, p := range c.Node.Permissions() {
		if p.BarsOnly() {
			d.demand(c, p, uncovered, old, new)
		}
	}
}

// demand adds a barrier beside the permissions of the place, if it holds.
func (d *Differ) demand(c *Scope, p *schema.Permission, uncovered schema.VerbSet, old, new rawjson.Value) {
	l := line{chain: make([]verbs.Verb, 0, 2), barrier: -1}
	if d.link(&l, p, uncovered, c.emitted, old, new); l.barrier >= 0 {
		c.demands = append(slices.Clip(c.demands), demand{l.chain[l.barrier:], len(c.chain)})
	}
}

// extendInTrees is extendLines for a node that is part of other objects as well.
func (d *Differ) extendInTrees(c *Scope, trees [][]*schema.Permission, uncovered schema.VerbSet, old, new rawjson.Value) {
	c.others = slices.Clone(c.others)
	for len(c.others) < len(trees)-1 {
		c.others = append(c.others, d.Root.line) // The other trees start at the root.
	}
	of := func(tree int) []*schema.Permission {
		if trees == nil {
			return c.Node.Permissions()
		}
		return trees[min(tree, len(trees)-1)]
	}
	c.line = d.extend(c.line, of(0), uncovered, c.emitted, old, new)
	for i := range c.others {
		c.others[i] = d.extend(c.others[i], of(i+1), uncovered, c.emitted, old, new)
	}
}

// enterStatus puts a barrier at the root into force that holds only in the status. Its verb stands above the status in the chain.
func (d *Differ) enterStatus(s *Scope) {
	if !d.InStatus.Has(verbs.All()) {
		return
	}
	s.barrier, s.others = max(s.barrier, 0), slices.Clone(s.others)
	for i := range s.others {
		s.others[i].barrier = max(s.others[i].barrier, 0)
	}
}

// extend returns the line with permissions of the next node added. The value of that node went from old to new.
func (d *Differ) extend(l line, permissions []*schema.Permission, uncovered schema.VerbSet, emitted *binding, old, new rawjson.Value) line {
	if len(permissions) == 0 {
		return l
	}
	more := len(permissions)
	for _, p := range permissions {
		if p.ParameterName() != "" {
			more++
		}
	}
	l.chain = d.chains.withRoom(l.chain, more)
	for _, p := range permissions {
		if !p.BarsOnly() {
			d.link(&l, p, uncovered, emitted, old, new)
		}
	}
	l.chain = d.chains.keep(l.chain)
	return l
}

// link adds the verbs of one permission to a line. The verb without its parameter covers all parameters, so it comes first. An excluded permission is
// a barrier there: no more general verb counts, whatever the parameter is.
func (d *Differ) link(l *line, p *schema.Permission, uncovered schema.VerbSet, emitted *binding, old, new rawjson.Value) {
	if p.MayBar() && d.bars(p, old, new) || p.Bared() && uncovered.HasWith(p.Base()) {
		l.barrier = len(l.chain)
	}
	l.add(p.Base(), uncovered)
	if p.ParameterName() != "" {
		if v, ok := p.Parameterized(emitted.lookup); ok {
			l.add(v, uncovered)
		}
	}
}

// UncoveredAt returns the barriers of sets that hold at a place for the current comparison.
func (d *Differ) UncoveredAt(s *Scope) schema.VerbSet {
	if d.InStatus != nil && s.InStatus {
		return d.InStatus
	}
	return d.Uncovered
}

// add adds a verb to the chain. If a set uncovers the verb, it is a barrier.
func (l *line) add(v verbs.Verb, uncovered schema.VerbSet) {
	if uncovered.Has(v) {
		l.barrier = len(l.chain)
	}
	l.chain = append(l.chain, v)
}

// Key enters the node below a member of an object.
func (d *Differ) Key(s Scope, key []byte, old, new rawjson.Value, visit Visitor) {
	child, field := s.Node.Map().Lookup(key)
	name, emitted := d.names.Of(key), s.emitted
	if field {
		d.child(s, child, d.paths.Field(s.Path, name), emitted, old, new, visit)
		return
	}
	d.child(s, child, d.paths.Key(s.Path, name), emitted.with(s.Node.Emits(), name), old, new, visit)
}

// child enters a node. If a scalar emits its own value as a parameter, a change counts as one value removed and another added, and each
// needs its own verb.
func (d *Differ) child(s Scope, node *schema.Node, path fieldpath.Path, emitted *binding, old, new rawjson.Value, visit Visitor) {
	if node.Emits() != "" && old.IsScalar() && new.IsScalar() && !d.Same.Equal(old, new) {
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

// Charge records that the node of s changed. If the node is part of other objects as well, each barrier needs a verb from that barrier
// on, in its own tree. Without barriers a verb of any tree is enough.
func (d *Differ) Charge(s Scope, op change.Operation) {
	if s.others == nil {
		d.require(s.Path, op, s.line)
	} else {
		d.chargeInTrees(&s, op)
	}
	for _, beside := range s.demands {
		l := line{chain: beside.verbs}
		if s.others == nil {
			l.chain = slices.Concat(beside.verbs, s.chain[beside.from:])
		}
		d.require(s.Path, op, l)
	}
}

// chargeInTrees is Charge for a place that is part of other objects as well. Few are, so its variables are not in the frame of Charge.
func (d *Differ) chargeInTrees(s *Scope, op change.Operation) {
	all, isStrict := s.line, false
	for _, l := range s.lines() {
		if l.strict() {
			d.require(s.Path, op, l)
			isStrict = true
		}
		for _, v := range l.chain {
			if !slices.Contains(all.chain, v) {
				all.chain = append(all.chain[:len(all.chain):len(all.chain)], v)
			}
		}
	}
	if !isStrict {
		d.require(s.Path, op, all)
	}
}

func (d *Differ) require(path fieldpath.Path, op change.Operation, l line) {
	if len(d.Out) == cap(d.Out) {
		// Most parts that wait on the stack will be charged too.
		d.reserve(max(len(d.Out), d.waiting(), 1))
	}
	d.Out = append(d.Out, change.Requirement{Path: path, Operation: op, Chain: l.chain, Barrier: l.barrier})
}

// reserve makes room for more requirements.
func (d *Differ) reserve(more int) { d.Out = slices.Grow(d.Out, more) }

// lines returns the line of the place in each tree.
func (s *Scope) lines() []line { return append([]line{s.line}, s.others...) }

// Barred reports whether any barrier holds for the place.
func (s *Scope) Barred() bool {
	return s.barrier >= 0 || len(s.demands) > 0 || slices.ContainsFunc(s.others, func(l line) bool { return l.barrier >= 0 })
}

// guards reports whether the place has a barrier of its own inside the scope above.
func (s *Scope) guards(above Scope) bool {
	if s.barrier > above.barrier || len(s.demands) > len(above.demands) {
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

// operation returns the change of a value that went from old to new.
func operation(old, new rawjson.Value) change.Operation {
	switch {
	case old.IsAbsent():
		return change.Added
	case new.IsAbsent():
		return change.Removed
	default:
		return change.Modified
	}
}
