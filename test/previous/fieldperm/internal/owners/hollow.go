package owners

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm/internal/walk"
	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
	"github.com/fieldperm/fieldperm/test/previous/schema"
)

// chargeHollow charges the unowned parts of a hollow struct, map or list of a manager that applies. A container is hollow if no manager
// owns a value in it: the manager applied it empty.
//
// The next apply of that manager converts the object to each version that an entry names, with nothing but the owned fields
// (structured-merge-diff, merge.Updater). A conversion may drop an empty container there. Then the apply deletes the container with its
// unowned parts. So the unowned parts are charged when an entry of another version appears, or when the last owned value in the container
// disappears.
func (o *owners) chargeHollow() {
	if o.d.Kind.ConvertsByName() || len(o.changed) == 0 {
		return
	}
	var was, is *smdpath.Set
	gone := false             // Whether a value lost its last owner.
	came := map[string]bool{} // What comes returns, by version: it looks at all entries, and there may be thousands of one version.
	for i := range o.is.entries {
		e := &o.is.entries[i]
		if o.d.Stops() || !o.is.applies(e.manager) || !o.is.hasOther(e.wroteIn) {
			continue
		}
		if is == nil {
			was = o.values(o.was, func(r *walk.Resolved) rawjson.Value { return r.Old })
			is = o.values(o.is, func(r *walk.Resolved) rawjson.Value { return r.New })
			gone = !was.Difference(is).Empty()
		}
		comes, known := came[e.wroteIn]
		if !known {
			comes = o.comes(e.wroteIn)
			came[e.wroteIn] = comes
		}
		o.chargeHollowOf(e, comes, gone, was, is)
	}
}

// hasOther reports whether there is an entry of another version.
func (m *managedFields) hasOther(version string) bool {
	return slices.ContainsFunc(m.entries, func(e managedEntry) bool { return e.wroteIn != version })
}

// comes reports whether an entry appears whose version is not the given one and had no entry before.
func (o *owners) comes(than string) bool {
	return slices.ContainsFunc(o.is.entries, func(e managedEntry) bool {
		return e.wroteIn != than && !slices.ContainsFunc(o.was.entries, func(old managedEntry) bool { return old.wroteIn == e.wroteIn })
	})
}

// values returns the owned paths that lead to a value that no conversion drops. Null and empty values are left out, and containers whose
// parts have owners of their own.
func (o *owners) values(in *managedFields, of func(*walk.Resolved) rawjson.Value) *smdpath.Set {
	out := smdpath.NewSet()
	for i := range in.entries {
		for p := range paths(o.inNames(&in.entries[i])) {
			if o.d.Stops() {
				return out
			}
			r := o.d.Resolve(p)
			v, m, l := of(&r), r.Scope.Node.Map(), r.Scope.Node.List()
			if v.IsScalar() || !v.IsEmpty() && (v.IsObject() && m != nil && m.Atomic() || v.IsList() && l != nil && l.Atomic()) {
				out.Insert(p)
			}
		}
	}
	return out
}

// chargeHollowOf charges the hollow containers of one applying manager. was and is are the owned values before and after, and gone says that one
// is not owned any more.
func (o *owners) chargeHollowOf(e *managedEntry, comes, gone bool, was, is *smdpath.Set) {
	here := o.inNames(e)
	if their := o.d.Kind.In(e.wroteIn); their != nil && (comes || gone) && o.appliesEmpty(e.set().Difference(here), e.set(), their) {
		o.chargeAll(e.manager)
		o.applied = true
		return
	}
	for p := range paths(here) {
		if o.d.Stops() {
			return
		}
		r := o.d.Resolve(p)
		points, had, has := o.d.Points(), was, is
		for i := range points {
			at := &points[i]
			if at.End || !walk.StaysContainer(at.Scope.Node, at.Old, at.New) || i == len(p)-1 && !r.Container {
				break
			}
			had, has = under(had, p[i]), under(has, p[i])
			if has.Empty() && p[i].FieldName != nil && (i > 0 || !isMetadata(&p[i])) && (comes || !had.Empty()) {
				o.chargeUnowned(p[:i+1], at.Scope, false)
				o.applied = true
				break
			}
		}
	}
}

// appliesEmpty reports whether one of the paths, in the names of another version, leads to a struct, map or list in which the manager
// owns nothing. Atomic ones do not count, because their parts have no owners.
func (o *owners) appliesEmpty(some, all *smdpath.Set, their *schema.Kind) bool {
	for p := range paths(some) {
		if o.d.Stops() {
			break
		}
		if hasBelow(all, p) {
			continue
		}
		n := o.scopeIn(their, p).Node
		if m, l := n.Map(), n.List(); m != nil && !m.Atomic() || l != nil && !l.Atomic() {
			return true
		}
	}
	return false
}
