package exact

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// hollow charges the whole object if entries have or had several versions, and the next apply of a manager may remove what nobody owns: a conversion
// may drop a container in which nothing is applied in the same version that has a scalar.
func (t transfer) hollow(once func(place)) {
	all := slices.Concat(t.was, t.is)
	several := slices.ContainsFunc(all, func(e ownerEntry) bool { return e.version != all[0].version })
	if t.kind.ConvertsByName() || t.stored != nil || !several {
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

// appliedValues are the paths of what some managers apply that has a scalar here.
func (t transfer) appliedValues(of func(ownerEntry) bool) (out []fieldpath.Path) {
	for _, e := range t.is {
		if !of(e) || !t.applies(e.manager) {
			continue
		}
		here := t.named(e)
		for _, p := range pathsOf(setOf(e)) {
			at := t.follow(p)
			if p.Equals(note) || here.Has(p) && !at.missing && !container(at.half(at.new, at.new)) && hasScalar(at.new) {
				out = append(out, p)
			}
		}
	}
	return out
}

// hasScalar reports whether a value has a scalar in it that is not zero.
func hasScalar(v *value) bool {
	switch {
	case v.is(boolean):
		return v.text == "true"
	case v.is(number):
		digits, _, _ := strings.Cut(strings.ToLower(v.text), "e")
		return strings.ContainsAny(digits, "123456789")
	case v.is(text):
		return v.text != ""
	}
	return v != nil && (slices.ContainsFunc(v.items, hasScalar) || slices.ContainsFunc(v.members, func(m member) bool { return hasScalar(m.value) }))
}

// emptied charges as hollow does if no owner changes, and an owned value loses its scalars.
func (o *oracle) emptied(root place) {
	owners, ok := readOwners(o.new.get("metadata").get("managedFields"))
	t := transfer{oracle: o, root: root, was: owners, is: owners}
	loses := slices.ContainsFunc(owners, func(e ownerEntry) bool {
		return slices.ContainsFunc(pathsOf(t.named(e)), func(p fieldpath.Path) bool {
			at := t.follow(p)
			return !at.missing && at.changed(o) && !hasScalar(at.new)
		})
	})
	if ok && !o.create && loses {
		o.owning = true
		t.hollow(o.chargeOnce(map[string]bool{}))
	}
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
