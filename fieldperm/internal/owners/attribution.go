package owners

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Unattributed reports whether no manager in the new object's managedFields owns the changed path, although managers own other paths.
// Then a mutating webhook or policy made the change after the request was merged, and the message tells the user so (D12). Use it for
// messages only, because a user can write managedFields. It returns false for removed values, which have no owner in the new object.
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
	path, ok := managedPath(r.Path)
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
func ownsAround(set *smdpath.Set, path smdpath.Path) bool {
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

// managedPath returns a path as managedFields write it. It reports false for a path that they cannot express.
func managedPath(p fieldpath.Path) (smdpath.Path, bool) {
	var out smdpath.Path
	for _, s := range p.Steps() {
		var element smdpath.PathElement
		switch s.Kind {
		case fieldpath.StepField, fieldpath.StepKey:
			element.FieldName = &s.Name
		case fieldpath.StepIndex:
			element.Index = &s.Index
		case fieldpath.StepMember:
			v := keyValue(s.Keys[0])
			element.Value = &v
		case fieldpath.StepItem:
			keys := smdvalue.FieldList{}
			for _, k := range s.Keys {
				if k.Value != nil {
					keys = append(keys, smdvalue.Field{Name: k.Name, Value: keyValue(k)})
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

func keyValue(k fieldpath.Key) smdvalue.Value {
	doc, err := rawjson.Scan(k.Value)
	if err != nil {
		return smdvalue.NewValueInterface(nil)
	}
	defer doc.Release()
	return smdvalue.NewValueInterface(rawjson.Native(doc.Root(), nil))
}
