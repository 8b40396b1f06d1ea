package schema

import smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// Likeness says which fields are the same in two versions, by the paths of managedFields. A field is the same if it has the same path and
// the same type in both. A struct, map or list whose parts have owners is the same if both versions have it, whatever its parts are. A
// nil Likeness is a place where nothing is the same.
type Likeness struct {
	// Whole means that everything at and below the place is the same.
	Whole  bool
	Fields map[string]*Likeness
	// Items is the likeness of the items of a list or the values of a map.
	Items *Likeness
}

// next returns the likeness one path element further.
func (l *Likeness) next(e smdpath.PathElement) *Likeness {
	if e.FieldName != nil {
		if out, declared := l.Fields[*e.FieldName]; declared {
			return out
		}
	}
	return l.Items
}

// of returns the paths of a set that lead to the same field in both versions. It descends only where the versions differ, because sets
// are large.
func (l *Likeness) of(set *smdpath.Set) *smdpath.Set {
	out := smdpath.NewSet()
	switch {
	case l == nil:
		return out
	case l.Whole:
		return set
	}
	set.Members.Iterate(func(e smdpath.PathElement) {
		if l.next(e) != nil {
			out.Members.Insert(e)
		}
	})
	set.Children.Iterate(func(e smdpath.PathElement) {
		if below, ok := set.Children.Get(e); ok {
			if alike := l.next(e).of(below); !alike.Empty() {
				*out.Children.Descend(e) = *alike
			}
		}
	})
	return out
}

// Alike returns the paths of managedFields in another version that lead to the same field in this version. Callers must not change either
// set.
func (k *Kind) Alike(apiVersion string, paths *smdpath.Set) *smdpath.Set {
	if apiVersion == k.GroupVersion().String() {
		return paths
	}
	return k.parts.Alike[apiVersion].of(paths)
}

// AlikeInAll returns the paths of managedFields that lead to the same field in every version whose fields are known, and in given versions. Callers must
// not change either set.
func (k *Kind) AlikeInAll(paths *smdpath.Set, versions map[string]bool) *smdpath.Set {
	for version, l := range k.parts.Alike {
		if l != nil || versions[version] {
			paths = l.of(paths)
		}
	}
	return paths
}

// Knows reports whether, according to the sources of the kind, an API server can convert it to a version.
func (k *Kind) Knows(apiVersion string) bool {
	_, known := k.parts.Alike[apiVersion]
	return known || apiVersion == k.GroupVersion().String()
}

// ConvertsByName reports whether conversion between the versions of the kind changes only the apiVersion, or there is no conversion. Any
// other conversion may drop an empty struct, map or list.
func (k *Kind) ConvertsByName() bool { return k.parts.ConvertsByName }

// IsBuiltIn reports whether the code of kube-apiserver converts the kind. It needs no other fields for that.
func (k *Kind) IsBuiltIn() bool { return k.parts.BuiltIn }

// Renames reports whether a field may have another name in another served version.
func (k *Kind) Renames() bool { return k.parts.Renames }
