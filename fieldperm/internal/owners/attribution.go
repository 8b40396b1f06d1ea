package owners

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Unattributed reports whether no manager in the new object's managedFields owns the changed path, although managers own other paths.
// Then a default of the API server, a mutating webhook or a policy made the change after the request was merged, and the message tells the
// user so (D12). Use it for messages only, because a user can write managedFields. It returns false for removed values, which have no owner
// in the new object, and where managedFields do not say enough.
func Unattributed(new []byte, r *change.Requirement) bool {
	if r == nil || r.Operation != change.Modified && r.Operation != change.Added {
		return false
	}
	doc, err := rawjson.Scan(new)
	if err != nil {
		return false
	}
	defer doc.Release()
	managed, ok := readManagedFields(doc.Root().Get("metadata").Get("managedFields"))
	if !ok || len(managed.entries) == 0 {
		return false
	}
	place := placeOf(doc.Root(), r.Path)
	for i := range managed.entries {
		if e := &managed.entries[i]; ownsAround(e.set(), place) || e.faulty {
			return false
		}
	}
	return true
}

// step is a step of a path in an object: the elements by which managedFields may name it.
type step struct {
	fixed smdpath.PathElement
	// list are the items of the list at which a step by position goes on, and item is the item there. Managers own items by their keys or
	// values.
	list []rawjson.Value
	item rawjson.Value
}

// placeOf returns the steps of a path in an object.
func placeOf(at rawjson.Value, p fieldpath.Path) []step {
	var out []step
	for _, s := range p.Steps() {
		var next step
		switch s.Kind {
		case fieldpath.StepField, fieldpath.StepKey:
			next.fixed.FieldName = &s.Name
			at = at.Get(s.Name)
		case fieldpath.StepIndex:
			next.fixed.Index = &s.Index
			for i := at.Items(); i.Next(); {
				next.list = append(next.list, i.Value())
			}
			if at = (rawjson.Value{}); s.Index < len(next.list) {
				at = next.list[s.Index]
			}
			next.item = at
		case fieldpath.StepMember:
			v := keyValue(s.Keys[0])
			next.fixed.Value = &v
			at = rawjson.Value{}
		case fieldpath.StepItem:
			keys := smdvalue.FieldList{}
			for _, k := range s.Keys {
				if k.Value != nil {
					keys = append(keys, smdvalue.Field{Name: k.Name, Value: keyValue(k)})
				}
			}
			keys.Sort()
			next.fixed.Key = &keys
			at = itemOf(at, &keys)
		}
		out = append(out, next)
	}
	return out
}

// itemOf returns the only item of a list with the keys, absent if there is none.
func itemOf(list rawjson.Value, keys *smdvalue.FieldList) rawjson.Value {
	var found rawjson.Value
	for i := list.Items(); i.Next(); {
		if !hasKeys(i.Value(), keys) {
			continue
		}
		if !found.IsAbsent() {
			return rawjson.Value{}
		}
		found = i.Value()
	}
	return found
}

// hasKeys reports whether an item has the keys. A key that it lacks may have its default.
func hasKeys(item rawjson.Value, keys *smdvalue.FieldList) bool {
	return !slices.ContainsFunc(*keys, func(k smdvalue.Field) bool {
		v := item.Get(k.Name)
		return !v.IsAbsent() && !smdvalue.Equals(smdvalue.NewValueInterface(rawjson.Native(v, nil)), k.Value)
	})
}

// elements returns the elements of a set that may be the step. It reports false if the set does not tell the items of the list apart.
func (s *step) elements(set *smdpath.Set) (out []smdpath.PathElement, known bool) {
	out, known = []smdpath.PathElement{s.fixed}, s.fixed.Index == nil || !s.item.IsAbsent()
	if s.fixed.Index == nil {
		return out, known
	}
	visit := func(e smdpath.PathElement) {
		switch {
		case e.Key != nil:
			same := 0
			for _, item := range s.list {
				if hasKeys(item, e.Key) {
					same++
				}
			}
			known = known && same < 2
			if hasKeys(s.item, e.Key) {
				out = append(out, e)
			}
		case e.Value != nil && smdvalue.Equals(*e.Value, smdvalue.NewValueInterface(rawjson.Native(s.item, nil))):
			out = append(out, e)
		}
	}
	set.Members.Iterate(visit)
	set.Children.Iterate(visit)
	return out, known
}

// ownsAround reports whether a set has the place, something below it, or a whole that it is part of. It is true for a place about which the
// set does not say enough.
func ownsAround(set *smdpath.Set, place []step) bool {
	if len(place) == 0 || set.Empty() {
		return !set.Empty()
	}
	elements, known := place[0].elements(set)
	return !known || slices.ContainsFunc(elements, func(e smdpath.PathElement) bool {
		below := set.WithPrefix(e)
		return set.Members.Has(e) && (len(place) == 1 || below.Empty()) || ownsAround(below, place[1:])
	})
}

func keyValue(k fieldpath.Key) smdvalue.Value {
	doc, err := rawjson.Scan(k.Value)
	if err != nil {
		return smdvalue.NewValueInterface(nil)
	}
	defer doc.Release()
	return smdvalue.NewValueInterface(rawjson.Native(doc.Root(), nil))
}
