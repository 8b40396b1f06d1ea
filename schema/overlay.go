package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// overlay is the tree of a kind's entries by path pattern. It does not change after the build of nodes has begun.
type overlay struct {
	guard *guard
	// general are the guards that this overlay has below those of all values of the map, if it singles out one key.
	general []*guard
	documents
	// catalogued means that the catalogue has an entry here, in a document or in an included fragment.
	catalogued bool
	role       Role
	// written is the entry that says when the API server writes the node, nil for none.
	written *guard
	// emitter is a guard that emitted a parameter before another guard replaced it.
	emitter *guard
	// included is an entry of an included fragment, or of another document of an administrator, that does not count here. The node still
	// emits its parameter, which other entries of the document need.
	included *guard
	// beside are barriers of entries that do not count, because one of a higher standing does. They hold beside it.
	beside []*guard
	fields map[string]*overlay
	any    *overlay
	key    string
}

// documents are the documents of administrators with an entry for a path. barredBy are those whose entry is a barrier.
type documents struct{ saidBy, barredBy []int }

// and returns the documents of both.
func (d documents) and(other documents) documents {
	return documents{slices.Concat(d.saidBy, other.saidBy), slices.Concat(d.barredBy, other.barredBy)}
}

// guard is the entry that counts for one pattern.
type guard struct {
	entry  *Entry
	source string
	rank   Rank
	// content is a unique text for everything that a node takes from the entry. says is the part of it that makes the permission, effect
	// the same without its origins.
	content, says, effect string
	// also are the conditions under which other versions have the barrier.
	also []string
	// document is the place of the document among all.
	document int
	// lent means that the entry, or a part of it, comes from another version. If the path does not emit the parameter, the verb is
	// used without it. If no scalar is declared there, the barrier holds for all values.
	lent bool
	// bared means that the verb takes a parameter, which is not known here.
	bared bool
	// everyKind means that the document is about every kind, not about the versions of one.
	everyKind bool
	// from are the origins, nil if the compile is not traced.
	from []Origin
}

func newGuard(source string, rank Rank, e *Entry, from []Origin) *guard {
	g := &guard{entry: e, source: source, rank: rank, from: from}
	g.describe()
	return g
}

// describe sets content, says and effect from the other fields.
func (g *guard) describe() {
	var c content
	e := g.entry
	c.flags(e.Excluded, g.bared)
	c.texts(e.Verb, e.ParameterizedBy, e.ParameterTreatment, e.ParameterExpression, e.ExcludedWhen)
	c.list(g.also...)
	c.list(stringsOf(e.Powers)...)
	g.effect = string(c)
	for _, from := range g.from {
		c.texts(string(from.Form), from.Source)
	}
	g.says = string(c)
	// The origins are at the end of says, so says is a text of its own here.
	c = nil
	c.flags(e.Optional, e.Bare, g.lent)
	c.texts(g.says, e.ParameterSource, writesKey(e.Writes), e.Fragment.Name, e.Fragment.At)
	c.number(int(g.rank))
	g.content = string(c)
}

// writesKey returns a unique text for the writes.
func writesKey(writes []endpoint.Write) string {
	if len(writes) == 0 {
		return ""
	}
	out, err := json.Marshal(writes)
	if err != nil {
		return fmt.Sprintf("%q", err)
	}
	return string(out)
}

func (g *guard) fault(format string, args ...any) *Error {
	return &Error{Source: g.source, Pointer: g.entry.Pointer, Message: fmt.Sprintf(format, args...)}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// lay adds the statements of one document to the tree.
func (o *overlay) lay(document []statement) {
	for _, s := range document {
		at := o.at(s.path)
		at.catalogued = at.catalogued || s.guard.rank <= RankCatalogue || s.guard.isIncluded()
		// The catalogue gives a role, and no other document can remove it.
		if e := s.guard.entry; e.Role != RoleNone {
			at.role = e.Role
		}
		if len(s.guard.entry.Writes) > 0 {
			at.written = s.guard
			continue
		}
		at.note(s.guard)
		switch {
		case at.guard == nil || s.guard.standing() > at.guard.standing():
			at.settle(at.over(s.guard, at.guard), at.guard)
		case s.guard.standing() < at.guard.standing():
			at.settle(at.over(at.guard, s.guard), s.guard)
		case at.guard.isLiftedBy(s.guard):
			at.settle(at.guard, s.guard)
		case at.guard.isAgainst(s.guard):
			at.settle(s.guard.joined(at.guard), at.guard)
		default:
			at.settle(s.guard, at.guard)
		}
	}
}

// note records the document of an entry.
func (o *overlay) note(g *guard) {
	if g.rank != RankAdministrator {
		return
	}
	o.saidBy = append(o.saidBy, g.document)
	if g.bars() {
		o.barredBy = append(o.barredBy, g.document)
	}
}

// over returns the guard that counts over another one, which may be nil. No document lifts the barrier of another: with the same verb it is one of the
// guard that counts, and with another verb it holds beside it.
func (o *overlay) over(counts, other *guard) *guard {
	if other == nil || !other.bars() {
		return counts
	}
	// A third document may replace the guard that counts. Where that has the barrier, it is not needed besides (guard.hasBarrierOf).
	o.beside = append(o.beside, other)
	if !counts.sameVerb(other) {
		return counts
	}
	return counts.joined(other)
}

// hasBarrierOf reports whether the guard is a barrier with the same verb wherever the other one is.
func (g *guard) hasBarrierOf(other *guard) bool {
	if g == nil || !g.sameVerb(other) || !g.bars() {
		return false
	}
	return g == other || g.entry.Excluded || !other.entry.Excluded && (g.entry.ExcludedWhen == other.entry.ExcludedWhen || slices.Contains(g.also, other.entry.ExcludedWhen))
}

// settle makes the first guard count, and keeps what the other one emits. The other may be nil.
func (o *overlay) settle(counts, other *guard) {
	o.guard = counts
	switch {
	case other == nil || other.entry.ParameterSource == "":
	case other.isIncluded() && !counts.isIncluded(), counts.isLiftedBy(other):
		o.included = other
	default:
		o.emitter = other
	}
}

// standing orders the guards of one pattern. An include stands for many entries that its author does not see. So it adds to what other
// documents say about the kind, and replaces nothing of it, whatever the ranks: above all no barrier.
func (g *guard) standing() int {
	if g.rank <= RankCatalogue || g.isIncluded() {
		return int(g.rank)
	}
	return int(RankAdministrator) + int(g.rank)
}

// isLiftedBy reports whether the guard is a barrier of an administrator that another document of an administrator would lift, by an entry
// without one, or make conditional. Such documents have authors who do not know of each other, for example those of a catalogue for a product.
func (g *guard) isLiftedBy(other *guard) bool {
	return g.isAgainst(other) && (!other.bars() || g.entry.Excluded && !other.entry.Excluded)
}

// isAgainst reports whether the guard is a barrier that holds whatever the other guard says, because another administrator has made it.
func (g *guard) isAgainst(other *guard) bool {
	return g.bars() && g.rank == RankAdministrator && g.standing() == other.standing() && g.document != other.document
}

// joined returns the guard as a barrier under the condition of the other one too.
func (g *guard) joined(other *guard) *guard {
	if g.entry.Excluded {
		return g
	}
	out := g.strengthen(other)
	out.lent = g.lent
	out.describe()
	return out
}

// isIncluded reports whether the entry comes from an include.
func (g *guard) isIncluded() bool { return g.entry.Fragment != Fragment{} }

// emitting returns the guard whose parameter the node emits, nil for none.
func (o *overlay) emitting() *guard {
	if o == nil {
		return nil
	}
	for _, g := range slices.Backward(slices.Concat([]*guard{o.included}, o.general, []*guard{o.guard})) {
		if g != nil && g.entry.ParameterSource != "" {
			return g
		}
	}
	return nil
}

func (g *guard) bars() bool {
	return g.entry.Verb != "" && (g.entry.Excluded || g.entry.ExcludedWhen != "")
}

// at returns the overlay of a path, which it adds if there is none.
func (o *overlay) at(path fieldpath.Pattern) *overlay {
	for _, step := range path {
		o = o.grow(step)
	}
	return o
}

func (o *overlay) grow(step fieldpath.Element) *overlay {
	if step.Any {
		if o.any == nil {
			o.any = &overlay{}
		}
		return o.any
	}
	if o.fields == nil {
		o.fields = map[string]*overlay{}
	}
	next := o.fields[step.Name]
	if next == nil {
		next = &overlay{}
		o.fields[step.Name] = next
	}
	return next
}

func (o *overlay) field(name string) *overlay {
	if o == nil {
		return nil
	}
	return o.fields[name]
}

func (o *overlay) items() *overlay {
	if o == nil {
		return nil
	}
	return o.any
}

// merge lays outer over inner. Per node the guard of the higher standing counts. If they are equal outer counts, because the entry of a
// field takes precedence over that of its type. ofKey means that outer is about one key, and inner about others too: then a barrier of outer holds
// beside an inner guard of a higher standing, because it is more specific.
func merge(outer, inner *overlay, ofKey bool) *overlay {
	if outer == nil {
		return inner
	}
	if inner == nil {
		return outer
	}
	m := &overlay{guard: outer.guard, general: slices.Concat(inner.general, outer.general), role: outer.role, written: outer.written, any: merge(outer.any, inner.any, ofKey)}
	m.documents, m.beside = outer.documents.and(inner.documents), slices.Concat(inner.beside, outer.beside)
	m.catalogued = outer.catalogued || inner.catalogued
	m.emitter, m.included = cmp.Or(outer.emitter, inner.emitter), cmp.Or(outer.included, inner.included)
	switch {
	case inner.guard == nil:
	case m.guard == nil || inner.guard.standing() > m.guard.standing():
		if ofKey && m.guard != nil && m.guard.bars() {
			m.beside = append(m.beside, m.guard)
		}
		counts := inner.guard
		if !ofKey {
			counts = m.over(counts, m.guard)
		}
		m.settle(counts, m.guard)
	default:
		counts := m.guard
		if !ofKey && (inner.guard.standing() < counts.standing() || inner.guard.isAgainst(counts)) {
			counts = m.over(counts, inner.guard)
		}
		m.settle(counts, inner.guard)
		if inner.holdsBeside(outer) {
			m.general = slices.Concat(inner.general, []*guard{inner.guard}, outer.general)
		}
	}
	if m.role == RoleNone {
		m.role = inner.role
	}
	if m.written == nil {
		m.written = inner.written
	}
	if len(outer.fields)+len(inner.fields) > 0 {
		m.fields = maps.Clone(outer.fields)
		if m.fields == nil {
			m.fields = map[string]*overlay{}
		}
		for name, in := range inner.fields {
			m.fields[name] = merge(m.fields[name], in, ofKey)
		}
	}
	return m
}

// identity returns a key that is equal for overlays with equal content, so that they share compiled nodes. It is a hash of the own content and of
// the keys of the levels below: texts of whole trees would take memory with the square of the length of a path.
func (o *overlay) identity() string {
	if o == nil {
		return ""
	}
	if o.key == "" {
		var c content
		c.texts(string(o.role))
		c.flags(o.catalogued, o.emitter != nil, o.any != nil)
		c.guards(o.general)
		c.guards(o.beside)
		c.guards([]*guard{o.guard, o.written, o.included})
		c.numbers(o.saidBy)
		c.numbers(o.barredBy)
		if o.emitter != nil {
			c.texts(o.emitter.entry.ParameterSource)
		}
		if o.any != nil {
			c.texts(o.any.identity())
		}
		for _, name := range sortedKeys(o.fields) {
			c.texts(name, o.fields[name].identity())
		}
		sum := sha256.Sum256(c)
		o.key = string(sum[:])
	}
	return o.key
}
