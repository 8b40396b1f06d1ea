package owners

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// mostSimulated is how many next applies are simulated in one request. An API server gives fields to one manager that applies.
const mostSimulated = 16

// These are the most values and the most levels of an object whose next apply is simulated: structured-merge-diff takes time with the square of both.
const mostValues, mostLevels = 10_000, 1_000

// simulation asks structured-merge-diff what the next apply of a manager changes.
type simulation struct {
	old, new *typed.TypedValue
	// has are the paths of the old object.
	has *smdpath.Set
	err error
	// applies counts the simulated applies.
	applies int
	// updated has the paths that managers own that do not apply, owned those that any manager owns.
	updated, owned *smdpath.Set
	// unowned are the paths of the values of the new object that no manager owns, nil if nobody asked yet.
	unowned *smdpath.Set
}

// chargeNext charges what the next apply of a manager changes, if it applies what it owned before and still owns. gained is what it gained
// meanwhile.
//
// What others own by an update does not keep a struct, map or list: a user may remove that with its verb before the next apply. Only the own
// entry of what is around the gained field does. What others apply does, because their next apply restores it; but a barrier
// holds as if it did not. A merge into the bucket is free, except for barriers; a write in the name of the bucket is no merge.
func (o *owners) chargeNext(who manager, before, gained *smdpath.Set) {
	sim := o.simulate()
	if sim.err != nil || sim.applies >= mostSimulated {
		o.chargeAll(who)
		return
	}
	after := o.here(o.is.entry(who))
	keeps := before.Intersection(after)
	others := smdpath.ManagedFields{}
	var updates, applies []*smdpath.Set
	for i, other := range o.is.order {
		switch set := o.stays(other); {
		case other == who:
		case o.is.applies(other):
			applies = append(applies, set)
			others[strconv.Itoa(i)] = smdpath.NewVersionedSet(set, smdpath.APIVersion(o.version), other.operation == operationApply)
		default:
			updates = append(updates, set)
		}
	}
	own := union(updates)
	isFree := o.isBucket(who) && isWithin(gained.Difference(o.was.entry(who).set()), o.mergedInto(who, false))
	if !isFree {
		others[around] = o.around(gained, own, keeps.Union(union(applies)))
		o.chargeApply(who, keeps, after, others, sim.updated, false)
	}
	if (len(applies) > 0 || isFree) && o.d.LooksInside(o.d.Root) {
		others = smdpath.ManagedFields{around: o.around(gained, own, keeps)}
		o.chargeApply(who, keeps, after, others, sim.owned, true)
	}
}

// These are the managers of a simulated apply: the one that applies, and one for all that own what is around the gained fields.
const next, around = "next", "around"

// here returns the paths of an entry that mean the same in the object's version.
func (o *owners) here(e *managedEntry) *smdpath.Set {
	return o.d.Kind.Alike(e.wroteIn, e.set())
}

// owned returns the paths that some managers of the new object own, in the names of its version.
func (o *owners) owned(of func(manager) bool) *smdpath.Set {
	var sets []*smdpath.Set
	for _, who := range o.is.order {
		if of(who) {
			sets = append(sets, o.here(o.is.entry(who)))
		}
	}
	return union(sets)
}

func everyone(manager) bool { return true }

// stays returns what a manager of the new object owned before and still owns. The entries of another version count for nothing if a conversion may drop
// what they own.
func (o *owners) stays(who manager) *smdpath.Set {
	was, is := o.was.entry(who), o.is.entry(who)
	switch {
	case is.wroteIn != o.version && !o.d.Kind.ConvertsByName():
	case !o.changed[who]:
		return o.here(is)
	case was != nil && (was.wroteIn == o.version || o.d.Kind.ConvertsByName()):
		return o.here(is).Intersection(o.here(was))
	}
	return nothing
}

// around returns the own entries in a set, with the keys of items, of what is around gained fields. It ends at a struct, map or list that
// nothing keeps: neither its own entry, nor anything in the set keeps.
func (o *owners) around(gained, own, keeps *smdpath.Set) smdpath.VersionedSet {
	out := smdpath.NewSet()
	for p := range paths(gained) {
		if o.d.Stops() {
			break
		}
		r := o.d.Resolve(p)
		points, has, kept := o.d.Points(), own, keeps
		for i := range points {
			at, e := &points[i], p[i]
			if at.End || at.Old.IsAbsent() || at.New.IsAbsent() || i == len(p)-1 && !r.Container {
				break
			}
			// A conversion may drop an empty struct with its owner. An item has its keys.
			isOwn := has.Members.Has(e) && (e.Key != nil || o.d.Kind.ConvertsByName())
			isKept := isOwn || kept.Members.Has(e)
			has, kept = under(has, e), under(kept, e)
			if isOwn {
				out.Insert(p[:i+1])
				if e.Key != nil {
					for _, key := range *e.Key {
						if name := (smdpath.PathElement{FieldName: &key.Name}); has.Members.Has(name) {
							out.Insert(append(p[:i+1:i+1], name))
						}
					}
				}
			}
			// Every applied object has a name in its metadata.
			isMetadata := i == 0 && e.FieldName != nil && *e.FieldName == "metadata"
			if at.Field && !isKept && kept.Empty() && !isMetadata {
				break
			}
		}
	}
	return smdpath.NewVersionedSet(out, smdpath.APIVersion(o.version), false)
}

// chargeApply charges what an apply changes in the new object, except what the request changed already, and what others own. The manager owns
// last, and applies a part of it.
func (o *owners) chargeApply(who manager, part, last *smdpath.Set, others smdpath.ManagedFields, owned *smdpath.Set, onlyBarriers bool) {
	changed, err := o.apply(part, last, others)
	if err != nil {
		o.chargeAll(who)
		return
	}
	gone := smdpath.NewSet()
	for p := range paths(changed) {
		if o.d.Stops() {
			return
		}
		if isBelow(gone, p) {
			continue
		}
		switch r := o.d.Resolve(p); {
		case r.Changed:
			// The request changes a part of it. The barriers in the rest are not charged yet.
			o.chargeWithin(r.Place, r.Old)
		case r.ByServer, r.Missing, owned.Has(p), r.Container && r.Field && !r.Old.IsEmpty():
		case onlyBarriers:
			if !o.d.FillsIn(r.Place, r.Old) {
				o.chargeBarriersAt(r.Place, r.Old)
			}
		default:
			o.chargePlace(p, r)
			gone.Insert(p)
		}
	}
}

// isBelow reports whether a path is strictly below one of a set.
func isBelow(set *smdpath.Set, p smdpath.Path) bool {
	for i := range len(p) - 1 {
		if set.Members.Has(p[i]) {
			return true
		}
		set = under(set, p[i])
	}
	return false
}

var errTooLarge = errors.New("the object has too many values to simulate an apply")

// apply returns the paths that an apply changes in the new object, by a manager that owns last and applies a part of it.
func (o *owners) apply(part, last *smdpath.Set, managers smdpath.ManagedFields) (*smdpath.Set, error) {
	sim := o.simulate()
	sim.applies++
	manifest, err := o.manifestOf(part)
	if err != nil {
		return nil, err
	}
	version := smdpath.APIVersion(o.version)
	managers[next] = smdpath.NewVersionedSet(last, version, true)
	updater := (&merge.UpdaterBuilder{Converter: unconverted{}, ReturnInputOnNoop: true}).BuildUpdater()
	after, _, err := updater.Apply(sim.new, manifest, version, managers, next, true)
	if err != nil {
		return nil, err
	}
	c, err := sim.new.Compare(after)
	if err != nil {
		return nil, err
	}
	return c.Removed.Union(c.Modified).Union(c.Added), nil
}

var identifying = []smdpath.Path{smdpath.MakePathOrDie("apiVersion"), smdpath.MakePathOrDie("kind"), smdpath.MakePathOrDie("metadata", "name")}

// manifestOf returns what a manager applied that owned a set in the old object.
func (o *owners) manifestOf(set *smdpath.Set) (*typed.TypedValue, error) {
	sim := o.simulation
	applied := set.Intersection(sim.has).Leaves()
	for _, p := range identifying {
		applied.Insert(p)
	}
	content := sim.old.ExtractItems(applied, typed.WithAppendKeyFields()).AsValue().Unstructured()
	for p := range paths(set) {
		// It applied this struct or map empty, and others filled it.
		if r := o.d.Resolve(p); r.Container && r.Field && r.Old.IsObject() && under(set, p...).Empty() {
			addEmpty(content, p)
		}
	}
	return o.d.Kind.Type().FromUnstructured(content, typed.AllowDuplicates)
}

// addEmpty adds an empty object to a value, if the items that it is in are there.
func addEmpty(in any, p smdpath.Path) {
	for _, e := range p {
		switch at := in.(type) {
		case map[string]any:
			if e.FieldName == nil {
				return
			}
			if at[*e.FieldName] == nil {
				at[*e.FieldName] = map[string]any{}
			}
			in = at[*e.FieldName]
		case []any:
			found := slices.IndexFunc(at, func(item any) bool { return e.Key != nil && hasKey(item, *e.Key) })
			if found < 0 {
				return
			}
			in = at[found]
		default:
			return
		}
	}
}

// hasKey reports whether an item has the keys. It may lack one with its default.
func hasKey(item any, keys smdvalue.FieldList) bool {
	fields, ok := item.(map[string]any)
	return ok && !slices.ContainsFunc(keys, func(k smdvalue.Field) bool {
		return fields[k.Name] != nil && !smdvalue.Equals(smdvalue.NewValueInterface(fields[k.Name]), k.Value)
	})
}

// simulate returns the simulation.
func (o *owners) simulate() *simulation {
	if o.simulation != nil {
		return o.simulation
	}
	sim := &simulation{}
	o.simulation = sim
	for _, object := range []rawjson.Value{o.d.Old, o.d.New} {
		if left := mostValues; !isSmall(object, &left, mostLevels) {
			sim.err = errTooLarge
			return sim
		}
	}
	sim.updated, sim.owned = o.owned(func(who manager) bool { return !o.is.applies(who) }), o.owned(everyone)
	if sim.old, sim.err = o.typed(o.d.Old); sim.err != nil {
		return sim
	}
	if sim.has, sim.err = sim.old.ToFieldSet(); sim.err == nil {
		sim.new, sim.err = o.typed(o.d.New)
	}
	return sim
}

// isSmall reports whether a value has at most a number of levels, at most as many values at and below it as are left, and no number that API
// servers do not read.
func isSmall(v rawjson.Value, left *int, levels int) bool {
	*left--
	small := *left >= 0 && levels >= 0
	if v.Kind() == rawjson.Number {
		_, err := strconv.ParseFloat(string(v.Raw()), 64)
		small = small && err == nil
	}
	for m := v.Members(); small && m.Next(); {
		small = isSmall(m.Value(), left, levels-1)
	}
	for i := v.Items(); small && i.Next(); {
		small = isSmall(i.Value(), left, levels-1)
	}
	return small
}

// typed returns an object without its managedFields, as structured-merge-diff takes it.
func (o *owners) typed(object rawjson.Value) (*typed.TypedValue, error) {
	content := rawjson.Native(object, nil)
	if fields, ok := content.(map[string]any); ok {
		if metadata, ok := fields["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
		}
	}
	if o.d.Kind.IsBuiltIn() {
		dropNulls(content)
	}
	return o.d.Kind.Type().FromUnstructured(content, typed.AllowDuplicates)
}

// dropNulls removes the fields that are null. In an object that kube-apiserver has encoded from its own types, a null field is what an absent one is: it comes
// from a type that has no other form for that, such as the creationTimestamp of a template in 1.34 and before. Free JSON is stored with its nulls; it has one
// owner as a whole, so that no path of an owner leads to one (TestD8_FreeJSONOfBuiltInKindsHasNoOwnersOfItsOwn).
func dropNulls(content any) {
	switch content := content.(type) {
	case map[string]any:
		maps.DeleteFunc(content, func(_ string, v any) bool { return v == nil })
		for _, v := range content {
			dropNulls(v)
		}
	case []any:
		for _, v := range content {
			dropNulls(v)
		}
	}
}

// unconverted converts nothing: all sets are in the names of the object's version.
type unconverted struct{}

func (unconverted) Convert(object *typed.TypedValue, _ smdpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}

func (unconverted) IsMissingVersionError(error) bool { return false }
