package exact

import (
	"errors"
	"slices"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// hollow charges the whole object if the next apply of a manager may remove what nobody owns: a conversion may drop a container in which nothing is
// applied in the same version that has a scalar and that every version has there.
func (t transfer) hollow(once func(place)) {
	if t.kind.ConvertsByName() || t.stored != nil {
		return
	}
	unowned, err := t.withoutOwner()
	for _, e := range t.is {
		if !t.applies(e.manager) || !t.kind.Knows(e.version) {
			continue
		}
		if !t.ofVersion(e) && t.others[e.version] == nil {
			t.everything(once)
			return
		}
		moves := t.was.has(e.manager) && t.was.one(e.manager).version != e.version
		values := t.appliedValues(func(other ownerEntry) bool {
			return other.version == e.version && (!moves || other.manager == e.manager)
		})
		for _, p := range pathsOf(setOf(e)) {
			n := len(p)
			if !hasOwnedParts(t.placeIn(e, p)) || slices.ContainsFunc(values, p.Equals) {
				n--
			}
			for ; n > 0 && (n > 1 || !isMetadata(p)); n-- {
				isBelow := func(q fieldpath.Path) bool { return len(q) > n && q[:n].Equals(p[:n]) }
				if slices.ContainsFunc(values, isBelow) {
					break
				}
				if moves || !t.ofVersion(e) || err != nil || slices.ContainsFunc(unowned, isBelow) {
					t.everything(once)
					return
				}
			}
		}
	}
}

func setOf(e ownerEntry) *fieldpath.Set {
	if e.set == nil {
		return fieldpath.NewSet()
	}
	return e.set
}

func isMetadata(p fieldpath.Path) bool { return p[0].FieldName != nil && *p[0].FieldName == "metadata" }

// placeIn is where a path of an entry leads in the version of the entry.
func (t transfer) placeIn(e ownerEntry, p fieldpath.Path) place {
	if t.ofVersion(e) {
		return t.follow(p).place
	}
	return t.in(t.others[e.version], p).place
}

// appliedValues are the paths of what some managers apply that has a scalar here, and that every version has there. A built-in kind
// keeps each value, and annotations in both versions.
func (t transfer) appliedValues(of func(ownerEntry) bool) (out []fieldpath.Path) {
	for _, e := range t.is {
		if !of(e) || !t.applies(e.manager) {
			continue
		}
		here := t.named(e)
		for version := range t.others {
			here = here.Intersection(t.named(ownerEntry{version: version, set: here}))
		}
		for _, other := range slices.Concat(t.was, t.is) {
			if t.kind.Knows(other.version) {
				here = here.Intersection(t.named(ownerEntry{version: other.version, set: here}))
			}
		}
		for _, p := range pathsOf(setOf(e)) {
			at := t.follow(p)
			isAnnotation := len(p) == 3 && p[:2].Equals(note[:2])
			if p.Equals(note) || (here.Has(p) || t.kind.IsBuiltIn() && (isAnnotation || t.ofVersion(e))) && !at.missing && !container(at.half(at.new, at.new)) && hasScalar(at.new) {
				out = append(out, p)
			}
		}
	}
	return out
}

func hasScalar(v *value) bool {
	return v.isScalar() || v != nil && (slices.ContainsFunc(v.items, hasScalar) || slices.ContainsFunc(v.members, func(m member) bool { return hasScalar(m.value) }))
}

// emptied charges as hollow does if values change and no owner does.
func (o *oracle) emptied(root place) {
	if len(o.charges) == 0 {
		return
	}
	was, _ := readOwners(o.old.get("metadata").get("managedFields"))
	is, ok := readOwners(o.new.get("metadata").get("managedFields"))
	if ok && !o.create {
		before := o.owning
		o.owning = true
		transfer{oracle: o, root: root, was: was.lastOfEach(), is: is.lastOfEach()}.hollow(o.chargeOnce(map[string]bool{}))
		o.owning = before
	}
}

// withoutOwner are the leaves of the new object that no manager owns.
func (t transfer) withoutOwner() ([]fieldpath.Path, error) {
	if isBeyond(t.old) || isBeyond(t.new) {
		return nil, errors.New("no API server reads such a number")
	}
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

// isBeyond reports whether a value is or has a number that float64 cannot hold.
func isBeyond(v *value) bool {
	if v == nil {
		return false
	}
	_, err := strconv.ParseFloat(v.text, 64)
	return v.kind == number && err != nil || slices.ContainsFunc(v.items, isBeyond) || slices.ContainsFunc(v.members, func(m member) bool { return isBeyond(m.value) })
}
