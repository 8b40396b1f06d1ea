package exact

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// hollow charges the whole object if entries have several versions, and the next apply of a manager may remove what nobody owns: a conversion may
// drop a container in which nothing is applied that has a scalar.
func (t transfer) hollow(once func(place)) {
	several := slices.ContainsFunc(t.is, func(e ownerEntry) bool { return e.version != t.is[0].version })
	if t.kind.ConvertsByName() || t.stored != nil || len(t.moved) == 0 || !several {
		return
	}
	for _, e := range t.is {
		if !t.applies(e.manager) || e.set == nil || !t.ofVersion(e) && t.others[e.version] == nil {
			continue
		}
		kept := t.appliedValues(e.version)
		for _, p := range pathsOf(e.set) {
			n := len(p)
			if !hasOwnedParts(t.placeIn(e, p)) {
				n--
			}
			for ; n > 0 && (n > 1 || !isMetadata(p)); n-- {
				isBelow := func(q fieldpath.Path) bool { return len(q) > n && q[:n].Equals(p[:n]) }
				if slices.ContainsFunc(kept, isBelow) {
					break
				}
				if unowned, err := t.withoutOwner(); !t.ofVersion(e) || err != nil || slices.ContainsFunc(unowned, isBelow) {
					t.everything(once)
					return
				}
			}
		}
	}
}

func isMetadata(p fieldpath.Path) bool { return p[0].FieldName != nil && *p[0].FieldName == "metadata" }

// placeIn is where a path of an entry leads in the version of the entry.
func (t transfer) placeIn(e ownerEntry, p fieldpath.Path) place {
	if t.ofVersion(e) {
		return t.follow(p).place
	}
	return t.in(t.others[e.version], p).place
}

// appliedValues are the paths of what managers apply that has a scalar, in the names of a version. What another version has under another name is
// known by its type only.
func (t transfer) appliedValues(version string) (out []fieldpath.Path) {
	for _, e := range t.is {
		if !t.applies(e.manager) || e.set == nil || !t.ofVersion(e) && t.others[e.version] == nil {
			continue
		}
		here, set := t.named(e), e.set
		if e.version != version {
			set = t.kind.Alike(version, here)
		}
		for _, p := range pathsOf(set) {
			if at := t.follow(p); here.Has(p) && !at.missing && !hasOwnedParts(at.place) && hasScalar(at.new) {
				out = append(out, p)
			} else if atom := t.placeIn(e, p).atom; !here.Has(p) && atom.Scalar != nil && atom.Map == nil && atom.List == nil {
				out = append(out, p)
			}
		}
	}
	return out
}

func hasScalar(v *value) bool {
	return v.isScalar() || v != nil && (slices.ContainsFunc(v.items, hasScalar) || slices.ContainsFunc(v.members, func(m member) bool { return hasScalar(m.value) }))
}

// withoutOwner are the leaves of the new object that no manager owns.
func (t transfer) withoutOwner() ([]fieldpath.Path, error) {
	loose := typed.ParseableType{Schema: t.loose, TypeRef: loosenRef(t.root.ref)}
	object, err := loose.FromUnstructured(t.new.native(), typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	all, err := object.ToFieldSet()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pathsOf(all.Leaves()), func(p fieldpath.Path) bool {
		return slices.ContainsFunc(t.is, func(e ownerEntry) bool { return t.named(e).Has(p) })
	}), nil
}

func hasOwnedParts(p place) bool {
	fields, items := p.atom.Map, p.atom.List
	return fields != nil && fields.ElementRelationship != "atomic" || items != nil && items.ElementRelationship == "associative"
}
