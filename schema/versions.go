package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// A field of several versions is one field with one verb: what a document says of it for one version holds in the others as well,
// where nothing of the same rank is said for them. A barrier holds in all of them, as strong as it is in any.

// loan is a statement of a document about other versions.
type loan struct {
	statement
	// same is that the path is the same field in this version. Any other field gets barriers alone.
	same bool
}

// borrow lays statements about other versions over what is said of this one.
func (o *overlay) borrow(loans []loan) {
	for _, s := range loans {
		e := s.guard.entry
		if len(s.path) == 0 || len(e.Writes) > 0 || e.Verb == "" && e.ParameterSource == "" {
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
		at := o
		for _, step := range s.path {
			at = at.grow(step)
		}
		at.guard = at.guard.borrow(theirs)
	}
}

// borrow returns the guard of a field, nil for none, with what the guard of the same field in another version adds.
func (g *guard) borrow(theirs *guard) *guard {
	switch {
	case g == nil:
		return theirs.lend("")
	case theirs.entry.Verb == "":
		if g.lent && g.entry.ParameterSource == "" {
			return g.with(func(out *guard) { out.entry.ParameterSource = theirs.entry.ParameterSource })
		}
		return g
	case g.entry.Verb == "":
		return theirs.lend(g.entry.ParameterSource)
	case g.sameVerb(theirs):
		return g.strengthen(theirs)
	case g.bars() && !theirs.bars() || theirs.rank < g.rank || theirs.rank == g.rank && (g.bars() || !theirs.bars()):
		return g
	}
	return theirs.lend(g.entry.ParameterSource)
}

// with returns a changed copy that is lent.
func (g *guard) with(change func(*guard)) *guard {
	out, e := *g, *g.entry
	out.entry, out.lent = &e, true
	change(&out)
	out.describe()
	return &out
}

// lend returns the guard for a field that emits a parameter already, "" for none.
func (g *guard) lend(emitted string) *guard {
	return g.with(func(out *guard) {
		out.entry.Optional = true
		if emitted != "" {
			out.entry.ParameterSource = emitted
		}
	})
}

// bare returns the guard without the parameter that its verb takes.
func (g *guard) bare() *guard {
	return g.with(func(out *guard) {
		out.entry.ParameterizedBy, out.entry.ParameterTreatment, out.entry.ParameterExpression = "", "", ""
	})
}

func (g *guard) sameVerb(other *guard) bool {
	a, b := g.entry, other.entry
	return a.Verb == b.Verb && a.ParameterizedBy == b.ParameterizedBy && a.ParameterTreatment == b.ParameterTreatment && a.ParameterExpression == b.ParameterExpression
}

// strengthen returns the guard as a barrier wherever the other one is.
func (g *guard) strengthen(other *guard) *guard {
	if g.entry.Excluded || !other.bars() {
		return g
	}
	return g.with(func(out *guard) {
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

// keepsNames reports whether a field has the same path in both versions, whatever their types.
func (c *compiler) keepsNames(a, b runtimeschema.GroupVersionKind) bool {
	return c.owner[a].KeepsNames && c.owner[a] == c.owner[b]
}

// loans returns what a document about other versions says that counts there. The document may be about versions that nobody has:
// its barriers count all the same.
func (c *compiler) loans(gvk runtimeschema.GroupVersionKind, d *PermissionDocument, said []statement) []loan {
	var others []runtimeschema.GroupVersionKind
	for _, other := range c.versions[gvk.GroupKind()] {
		if d.matches(other) {
			others = append(others, other)
		}
	}
	var out []loan
	for _, s := range said {
		counts, same := len(others) == 0, false
		for _, other := range others {
			if c.said(other).find(s.path) == s.guard {
				counts = true
				same = same || shapeOf(gvk, c.owner).at(s.path).same(shapeOf(other, c.owner).at(s.path))
			}
		}
		if counts {
			out = append(out, loan{s, same})
		}
	}
	return out
}

// said returns what the documents about a version say of it. It must not be changed.
func (c *compiler) said(gvk runtimeschema.GroupVersionKind) *overlay {
	if c.overlays[gvk] == nil {
		c.overlays[gvk] = c.lay(gvk)
	}
	return c.overlays[gvk]
}

// find returns the guard of a path, nil for none.
func (o *overlay) find(path Pattern) *guard {
	for _, e := range path {
		if o = o.step(e); o == nil {
			return nil
		}
	}
	return o.guard
}

func (o *overlay) step(e element) *overlay {
	if e.any {
		return o.any
	}
	return o.fields[e.name]
}
