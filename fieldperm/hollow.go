package fieldperm

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// chargeHollow charges what nobody owns in a hollow struct, map or list of a manager that applies: one in which nobody owns a value. Such a manager
// applied it empty. Its next apply goes through each version that an entry names, with nothing but what is owned (structured-merge-diff, merge.Updater),
// and a conversion may drop what is empty there. Then the apply deletes the container, with what nobody owns in it. So this is charged where an entry
// of another version comes, or where the last value that anybody owned in the container goes.
func (o *owners) chargeHollow() {
	if o.d.kind.ConvertsByName() || len(o.changed) == 0 {
		return
	}
	var was, is *fieldpath.Set
	for i := range o.is.entries {
		e := &o.is.entries[i]
		if o.d.stops() || !o.is.applies(e.manager) || !o.is.hasOther(e.wroteIn) {
			continue
		}
		if is == nil {
			was = o.values(o.was, func(r *resolved) rawjson.Value { return r.old })
			is = o.values(o.is, func(r *resolved) rawjson.Value { return r.new })
		}
		o.chargeHollowOf(e, was, is)
	}
}

// hasOther reports whether there is an entry of another version.
func (m *managedFields) hasOther(version string) bool {
	return slices.ContainsFunc(m.entries, func(e managedEntry) bool { return e.wroteIn != version })
}

// comes reports whether there is an entry of a version, other than the given one, that had none before.
func (o *owners) comes(than string) bool {
	return slices.ContainsFunc(o.is.entries, func(e managedEntry) bool {
		return e.wroteIn != than && !slices.ContainsFunc(o.was.entries, func(old managedEntry) bool { return old.wroteIn == e.wroteIn })
	})
}

// values returns the owned paths that lead to a value which no conversion drops: neither null nor empty, nor a container, which has owned parts.
func (o *owners) values(in *managedFields, of func(*resolved) rawjson.Value) *fieldpath.Set {
	out := fieldpath.NewSet()
	for i := range in.entries {
		o.inNames(&in.entries[i]).Iterate(func(p fieldpath.Path) {
			if o.d.stops() {
				return
			}
			r := o.d.resolve(p)
			v, m, l := of(&r), r.scope.node.Map(), r.scope.node.List()
			if v.IsScalar() || !v.IsEmpty() && (v.IsObject() && m != nil && m.Atomic() || v.IsList() && l != nil && l.Atomic()) {
				out.Insert(slices.Clone(p))
			}
		})
	}
	return out
}

// chargeHollowOf does so for what one manager applies. was and is are the owned values.
func (o *owners) chargeHollowOf(e *managedEntry, was, is *fieldpath.Set) {
	comes, here := o.comes(e.wroteIn), o.inNames(e)
	if their := o.d.kind.In(e.wroteIn); their != nil && (comes || !was.Difference(is).Empty()) && o.appliesEmpty(e.set().Difference(here), e.set(), their) {
		o.chargeAll(e.manager)
		o.applied = true
		return
	}
	here.Iterate(func(p fieldpath.Path) {
		if o.d.stops() {
			return
		}
		r := o.d.resolve(p)
		points, had, has := o.d.trail.points, was, is
		for i := range points {
			at := &points[i]
			if at.end || !staysContainer(at.scope.node, at.old, at.new) || i == len(p)-1 && !r.container {
				return
			}
			had, has = had.WithPrefix(p[i]), has.WithPrefix(p[i])
			if has.Empty() && p[i].FieldName != nil && (i > 0 || !isMetadata(&p[i])) && (comes || !had.Empty()) {
				o.chargeUnowned(p[:i+1], at.scope, false)
				o.applied = true
				return
			}
		}
	})
}

// appliesEmpty reports whether one of the paths leads to a struct, map or list, in the names of another version, in which the manager owns nothing. An
// atomic one has nothing in it to own.
func (o *owners) appliesEmpty(paths, all *fieldpath.Set, their *schema.Kind) bool {
	found := false
	paths.Iterate(func(p fieldpath.Path) {
		if !found && !o.d.stops() && !hasBelow(all, p) {
			n := o.scopeIn(their, p).node
			m, l := n.Map(), n.List()
			found = m != nil && !m.Atomic() || l != nil && !l.Atomic()
		}
	})
	return found
}
