package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// A field that several versions have is one field with one verb. An entry for the field in one version applies to the other versions too,
// unless a document of the same rank has an entry for them. A barrier holds in all versions, with the strongest form that any version
// has.

// loan is an entry of a document about other versions that applies to this one.
type loan struct {
	// statement has the guard in which the entry counts. said is that of the entry.
	statement
	said *guard
	// same means that the path is the same field in this version. To a field that is not the same, only barriers apply.
	same bool
	// counts means that the entry counts in its version. If not, its document
	// still says something about the field here.
	counts bool
}

// borrow adds entries for other versions to the entries of this version.
func (o *overlay) borrow(loans []loan) {
	for _, s := range loans {
		e := s.guard.entry
		if len(s.path) == 0 || len(e.Writes) > 0 || e.Verb == "" && e.ParameterSource == "" {
			continue
		}
		if !s.counts {
			// The document takes a key out of its own barrier on all keys, in each version or in none. The guard that counts instead is lent too.
			o.at(s.path).note(s.said)
			continue
		}
		theirs := s.guard
		if !s.same {
			if !theirs.bars() {
				continue
			}
			theirs = theirs.bare()
			theirs.entry.ParameterSource = ""
			theirs.describe()
		}
		at := o.at(s.path)
		was := at.guard
		at.guard = was.borrow(theirs)
		for _, barrier := range []*guard{was, theirs} {
			if barrier != nil && barrier.bars() && !at.guard.hasBarrierOf(barrier) && !slices.ContainsFunc(at.beside, func(g *guard) bool { return g.hasBarrierOf(barrier) }) {
				at.beside = append(at.beside, barrier.lend(""))
			}
		}
		at.note(s.said)
	}
}

// borrow returns the guard of a field, nil for none, together with the additions of the guard of the same field in another version.
func (g *guard) borrow(theirs *guard) *guard {
	switch {
	case g == nil:
		return theirs.lend("")
	case theirs.entry.Verb == "":
		if g.lent && g.entry.ParameterSource == "" {
			return g.change(func(out *guard) { out.entry.ParameterSource = theirs.entry.ParameterSource })
		}
		return g
	case g.entry.Verb == "":
		return theirs.lend(g.entry.ParameterSource)
	case g.sameVerb(theirs):
		return g.strengthen(theirs)
	case g.bars() && !theirs.bars() || theirs.standing() < g.standing() || theirs.standing() == g.standing() && (g.bars() || !theirs.bars()):
		return g
	}
	return theirs.lend(g.entry.ParameterSource)
}

// change returns a changed copy that is marked as lent.
func (g *guard) change(change func(*guard)) *guard {
	out, e := *g, *g.entry
	out.entry, out.lent = &e, true
	change(&out)
	out.describe()
	return &out
}

// lend returns the guard for a field that already emits the parameter emitted, "" for none.
func (g *guard) lend(emitted string) *guard {
	return g.change(func(out *guard) {
		out.entry.Optional = true
		if emitted != "" {
			out.entry.ParameterSource = emitted
		}
	})
}

// bare returns the guard without the parameter of its verb.
func (g *guard) bare() *guard {
	return g.change(func(out *guard) {
		out.bared = out.bared || out.entry.ParameterizedBy != ""
		out.entry.ParameterizedBy, out.entry.ParameterTreatment, out.entry.ParameterExpression = "", "", ""
	})
}

// always returns the guard as a barrier for all values.
func (g *guard) always() *guard {
	return g.change(func(out *guard) { out.entry.Excluded, out.entry.ExcludedWhen, out.also = true, "", nil })
}

func (g *guard) sameVerb(other *guard) bool {
	a, b := g.entry, other.entry
	return a.Verb == b.Verb && a.ParameterizedBy == b.ParameterizedBy && a.ParameterTreatment == b.ParameterTreatment && a.ParameterExpression == b.ParameterExpression
}

// strengthen returns the guard as a barrier in every case in which the other one is a barrier.
func (g *guard) strengthen(other *guard) *guard {
	if g.entry.Excluded || !other.bars() {
		return g
	}
	return g.change(func(out *guard) {
		out.withOrigins(other)
		out.lent = g.lent || g.entry.ExcludedWhen == ""
		if other.entry.Excluded {
			out.entry.Excluded, out.entry.ExcludedWhen, out.also = true, "", nil
			return
		}
		when := slices.DeleteFunc(append([]string{g.entry.ExcludedWhen, other.entry.ExcludedWhen}, g.also...), func(s string) bool { return s == "" })
		slices.Sort(when)
		when = slices.Compact(when)
		out.entry.ExcludedWhen, out.also = when[0], when[1:]
	})
}

// keepsNames reports whether every field has the same path in both versions, whatever its type.
func (c *compiler) keepsNames(a, b runtimeschema.GroupVersionKind) bool {
	return c.owner[a].KeepsNames && c.owner[a] == c.owner[b]
}

// loans returns the entries of a document about other versions that apply to this version, and those that another entry replaces in their own
// version. If the document is about versions that do not exist, all its entries are candidates, so that its barriers hold.
func (c *compiler) loans(gvk runtimeschema.GroupVersionKind, d *PermissionDocument, said []statement) []loan {
	var others []runtimeschema.GroupVersionKind
	for _, other := range c.versions[gvk.GroupKind()] {
		if d.matches(other) {
			others = append(others, other)
		}
	}
	var out []loan
	for _, s := range said {
		counting, replaced := loan{statement: s, said: s.guard, counts: len(others) == 0}, loan{statement: s, said: s.guard}
		for _, other := range others {
			isSame := shapeOf(gvk, c.owner).at(s.path).same(shapeOf(other, c.owner).at(s.path))
			if g := c.said(other).counting(s); g != nil {
				counting.counts, counting.same, counting.guard = true, counting.same || isSame, g
			} else {
				replaced.same = replaced.same || isSame
			}
		}
		if replaced.same {
			out = append(out, replaced)
		}
		if counting.counts {
			out = append(out, counting)
		}
	}
	return out
}

// said returns the entries of the documents about a version. Callers must not change it.
func (c *compiler) said(gvk runtimeschema.GroupVersionKind) *overlay {
	if c.overlays[gvk] == nil {
		c.overlays[gvk] = c.lay(gvk)
	}
	return c.overlays[gvk]
}

// counting returns the guard in which an entry counts, nil if it does not count: its own, or one that joins the barriers of several documents.
func (o *overlay) counting(s statement) *guard {
	if o = o.reach(s.path); o != nil && (o.guard == s.guard || s.guard.bars() && slices.Contains(o.barredBy, s.guard.document)) {
		return o.guard
	}
	if o != nil && slices.Contains(o.beside, s.guard) {
		return s.guard
	}
	return nil
}

// find returns the guard of a path, nil for none.
func (o *overlay) find(path fieldpath.Pattern) *guard {
	if o = o.reach(path); o == nil {
		return nil
	}
	return o.guard
}

func (o *overlay) reach(path fieldpath.Pattern) *overlay {
	for _, e := range path {
		if o = o.step(e); o == nil {
			return nil
		}
	}
	return o
}

func (o *overlay) step(e fieldpath.Element) *overlay {
	if e.Any {
		return o.any
	}
	return o.fields[e.Name]
}
