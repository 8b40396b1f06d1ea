package owners

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm/change"
	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
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
		if owns, known := ownsAround(managed.entries[i].raw, place); owns || !known {
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
	// compared counts items whose keys were compared.
	compared int
}

// mostCompared bounds the comparisons of the items of a list with the keys that managers own. It is for a message only.
const mostCompared = 1 << 16

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

// is reports whether an element of managedFields is the step. known is false if it does not tell the items of the list apart.
func (s *step) is(e smdpath.PathElement) (is, known bool) {
	switch {
	case s.fixed.Equals(e):
		return true, true
	case s.fixed.Index == nil:
		return false, true
	case s.item.IsAbsent():
		return false, false
	case e.Key != nil:
		if s.compared += len(s.list); s.compared > mostCompared {
			return false, false
		}
		same := 0
		for _, item := range s.list {
			if hasKeys(item, e.Key) {
				same++
			}
		}
		return hasKeys(s.item, e.Key), same < 2
	}
	return e.Value != nil && smdvalue.Equals(*e.Value, smdvalue.NewValueInterface(rawjson.Native(s.item, nil))), true
}

// itself is the member of fieldsV1 that stands for the place that it is in.
const itself = "."

// ownsAround reports whether fieldsV1 has the place, something below it, or a whole that it is part of. known is false if it does not say
// enough about the place. It decodes no other parts of fieldsV1, because a denial must not cost what its objects have of managers.
func ownsAround(fields rawjson.Value, place []step) (owns, known bool) {
	if !fields.IsObject() {
		return false, false
	}
	if len(place) == 0 {
		return hasPaths(fields), true
	}
	s := &place[0]
	if s.fixed.FieldName != nil {
		return ownsBelow(fields.Get("f:"+*s.fixed.FieldName), place[1:])
	}
	for m := fields.Members(); m.Next(); {
		name := m.Name().String()
		if name == itself {
			continue
		}
		e, err := smdpath.DeserializePathElement(name)
		if err != nil {
			return false, false
		}
		is, known := s.is(e)
		if !known {
			return false, false
		}
		if !is {
			continue
		}
		if owns, known := ownsBelow(m.Value(), place[1:]); owns || !known {
			return owns, known
		}
	}
	return false, true
}

// ownsBelow is ownsAround for the part of fieldsV1 about one step, absent if there is none, and the rest of the place.
func ownsBelow(part rawjson.Value, rest []step) (owns, known bool) {
	if part.IsAbsent() {
		return false, true
	}
	if !part.IsObject() {
		return false, false
	}
	if more := hasPaths(part); !more || len(rest) == 0 {
		return true, true
	}
	return ownsAround(part, rest)
}

// hasPaths reports whether fieldsV1, or a part of it, has paths below.
func hasPaths(fields rawjson.Value) bool {
	for m := fields.Members(); m.Next(); {
		if !m.Name().Is(itself) {
			return true
		}
	}
	return false
}

func keyValue(k fieldpath.Key) smdvalue.Value {
	doc, err := rawjson.Scan(k.Value)
	if err != nil {
		return smdvalue.NewValueInterface(nil)
	}
	defer doc.Release()
	return smdvalue.NewValueInterface(rawjson.Native(doc.Root(), nil))
}
