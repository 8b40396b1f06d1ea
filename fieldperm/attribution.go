package fieldperm

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Unattributed reports whether no manager in the new object's managedFields owns the changed path, although managers own other paths.
// Then a mutating webhook or policy made the change after the request was merged, and the message tells the user so (D12). Use it for
// messages only, because a user can write managedFields. It returns false for removed values, which have no owner in the new object.
func Unattributed(new []byte, r *Requirement) bool {
	if r == nil || r.Operation != Modified && r.Operation != Added {
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
	path, ok := r.Path.fields()
	if !ok {
		return false
	}
	for i := range managed.entries {
		if e := &managed.entries[i]; ownsAround(e.set(), path) || e.faulty {
			return false
		}
	}
	return true
}

// ownsAround reports whether a set has the path, something below it, or a whole that it is part of.
func ownsAround(set *fieldpath.Set, path fieldpath.Path) bool {
	for i, element := range path {
		if set.Empty() {
			return false
		}
		below := set.WithPrefix(element)
		if set.Members.Has(element) && (i == len(path)-1 || below.Empty()) {
			return true
		}
		set = below
	}
	return !set.Empty()
}

// fields returns the path as managedFields write it. It reports false for a path that they cannot express.
func (p Path) fields() (fieldpath.Path, bool) {
	var out fieldpath.Path
	for _, s := range p.steps() {
		var element fieldpath.PathElement
		switch s.stepKind {
		case stepField, stepKey:
			element.FieldName = &s.name
		case stepIndex:
			element.Index = &s.index
		case stepMember:
			v := s.keys[0].native()
			element.Value = &v
		case stepItem:
			keys := smdvalue.FieldList{}
			for _, k := range s.keys {
				if k.Value != nil {
					keys = append(keys, smdvalue.Field{Name: k.Name, Value: k.native()})
				}
			}
			keys.Sort()
			element.Key = &keys
		default:
			return nil, false
		}
		out = append(out, element)
	}
	return out, true
}

func (k PathKey) native() smdvalue.Value {
	doc, err := rawjson.Scan(k.Value)
	if err != nil {
		return smdvalue.NewValueInterface(nil)
	}
	defer doc.Release()
	return smdvalue.NewValueInterface(native(doc.Root(), nil))
}
