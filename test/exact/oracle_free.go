package exact

import (
	"encoding/json"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// lossIsFree reports whether a manager may lose a path without a charge: together with the value; by the server's merge of old entries; or
// as the own entry or key of an item that the manager leaves completely, if one of its fields in the item has changed and the managers that
// update keep the item.
func (t transfer) lossIsFree(m manager, p fieldpath.Path) bool {
	if t.merged(m, p) {
		return true
	}
	e := t.follow(p)
	switch {
	case e.changed(t.oracle), e.byServer():
		return true
	case e.missing && e.above:
		// The path may be the name of the changed field in the version of the entry.
		return t.stored != nil && !t.ofVersion(t.was.one(m))
	case e.container || e.keyField:
		item := e.shell(p)
		left := slices.ContainsFunc(pathsOf(t.was.of(m).Difference(t.is.of(m))), func(lost fieldpath.Path) bool {
			return inside(lost, item) && t.follow(lost).changed(t.oracle)
		})
		return m.operation == "Apply" && item[len(item)-1].Key != nil && left && !t.any(t.is.of(m), item) &&
			t.keeps(item, func(other manager) bool { return other.operation == "Update" && !t.applies(other) })
	}
	return false
}

// gainIsFree reports whether a manager may gain a path without a charge: together with the value; by the server's own entries; or as the
// own entry or key of an item that another manager has before and after, together with a field in the item that is neither.
func (t transfer) gainIsFree(m manager, p fieldpath.Path, gained *fieldpath.Set) bool {
	e := t.follow(p)
	sameVersion := t.ofVersion(t.is.one(m))
	if e.changed(t.oracle) && sameVersion {
		return true
	}
	if t.isBucket(m) {
		return t.vanishedHad(m, p)
	}
	if m.operation == "Apply" {
		item := e.shell(p)
		with := slices.ContainsFunc(pathsOf(gained), func(other fieldpath.Path) bool {
			at := t.follow(other)
			return inside(other, item) && !at.container && !at.keyField
		})
		return sameVersion && (e.container || e.keyField) && item[len(item)-1].Key != nil && with && !t.any(t.was.of(m), item) &&
			t.keeps(item, func(manager) bool { return true })
	}
	return false
}

// isBucket reports whether the server merges old entries into a manager.
func (t transfer) isBucket(m manager) bool {
	return m.name == "ancient-changes" && m.operation == "Update" && t.mayMerge()
}

// vanishedHad reports whether a manager that the server may have merged had a path.
func (t transfer) vanishedHad(m manager, p fieldpath.Path) bool {
	return slices.ContainsFunc(t.was.managers(), func(other manager) bool {
		return t.vanishedUpdate(other) && other.version == m.version && t.was.of(other).Has(p)
	})
}

// merged reports whether the server gave a path to the bucket.
func (t transfer) merged(m manager, p fieldpath.Path) bool {
	return m.operation == "Update" && t.vanished(m) && t.mayMerge() && t.is.of(manager{"ancient-changes", "Update", "", m.version}).Has(p)
}

// applies reports whether a manager applies, or a client will make it a manager that applies: kubectl does so with the manager that owns
// the annotation of client-side apply.
func (t transfer) applies(m manager) bool { return t.is.applies(m) }

func (l ownerList) applies(m manager) bool {
	return m.operation == "Apply" || slices.Contains(migrated, m.name) || l.owns(m.name)
}

var note = fieldpath.MakePathOrDie("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")

// writesManifest reports whether a manager applies a path on the client by the request.
func (t transfer) writesManifest(m manager, p fieldpath.Path) bool {
	at := t.follow(note)
	if m.operation == "Apply" || !t.is.of(m).Has(note) || !at.changed(t.oracle) || !at.new.is(text) {
		return false
	}
	manifest, err := parse([]byte(at.new.text))
	version, _ := t.version()
	if err != nil || !manifest.get("apiVersion").is(text) || manifest.get("apiVersion").text != version {
		return false
	}
	t.root = t.enter(place{barrier: -1}, t.oracle.root, t.kind.Root, "", nil, nil, manifest)
	return p.Equals(note) || t.stored != nil || !t.follow(p).missing
}

// comesToApply reports whether a manager becomes a manager that applies because of its new fields.
func (t transfer) comesToApply(m manager) bool { return t.is.applies(m) && !t.was.applies(m) }

// migrated are the names under which clients know client-side appliers.
var migrated = []string{"kubectl-client-side-apply", "argocd-controller", "kustomize-controller", "helm", "helm-controller", "before-first-apply"}

// owns reports whether a manager of that name that updates owns the annotation of client-side apply.
func (l ownerList) owns(name string) bool {
	return slices.ContainsFunc(l, func(e ownerEntry) bool {
		return e.operation == "Update" && e.name == name && e.set != nil && e.set.Has(note)
	})
}

// keeps reports whether managers have an item before and after, with all paths that the item needs between them.
func (t transfer) keeps(item fieldpath.Path, by func(manager) bool) bool {
	all := fieldpath.NewSet()
	t.anyManager(func(m manager, set *fieldpath.Set) bool {
		if by(m) {
			all = all.Union(set)
		}
		return false
	})
	return t.owns(all, item)
}

// owns reports whether a set has a path, and the keys if the path is an item: structured-merge-diff keeps no item without its keys.
func (t transfer) owns(set *fieldpath.Set, p fieldpath.Path) bool {
	keys := p[len(p)-1].Key
	return set.Has(p) && (keys == nil || t.isAtomic(p) || !slices.ContainsFunc(*keys, func(k smdvalue.Field) bool {
		fallback := t.keyValue(t.follow(p[:len(p)-1]).atom.List, k.Name, &value{kind: object})
		return !set.Has(append(slices.Clone(p), fieldpath.PathElement{FieldName: &k.Name})) && (fallback == nil || fallback.canonical() != fromSMD(k.Value).canonical())
	}))
}

// isAtomic reports whether a path leads to a value whose parts have no owners.
func (t transfer) isAtomic(p fieldpath.Path) bool {
	at := t.follow(p)
	return t.follow(p[:len(p)-1]).atom.List != nil && (at.atom.Map == nil || at.atom.Map.ElementRelationship == "atomic")
}

// anyManager reports whether any manager has a path before and after, in the names of the object's version.
func (t transfer) anyManager(has func(manager, *fieldpath.Set) bool) bool {
	for _, e := range t.is {
		switch set := t.named(e); {
		case !t.kind.ConvertsByName() && (!t.ofVersion(e) || t.was.has(e.manager) && !t.ofVersion(t.was.one(e.manager))):
			// A container in the names of that version may be another container here.
		case !slices.Contains(t.moved, e.manager):
			if has(e.manager, set) {
				return true
			}
		case t.was.has(e.manager) && has(e.manager, set.Intersection(t.named(t.was.one(e.manager)))):
			return true
		}
	}
	return false
}

// ofVersion reports whether an entry has the version of the request.
func (o *oracle) ofVersion(e ownerEntry) bool {
	version, _ := o.version()
	return e.version == version
}

// otherGroup reports whether an entry has another group than the request: no API server keeps such entries.
func (o *oracle) otherGroup(e ownerEntry) bool {
	version, known := o.version()
	asked, _ := runtimeschema.ParseGroupVersion(version)
	wrote, _ := runtimeschema.ParseGroupVersion(e.version)
	return known && version != "" && asked.Group != wrote.Group
}

// shell returns the item whose own entry or key p is.
func (e end) shell(p fieldpath.Path) fieldpath.Path {
	if e.keyField {
		return p[:len(p)-1]
	}
	return p
}

func inside(p, item fieldpath.Path) bool {
	return len(p) > len(item) && p[:len(item)].Equals(item)
}

// any reports whether a set has a path below a path.
func (t transfer) any(set *fieldpath.Set, p fieldpath.Path) bool {
	return slices.ContainsFunc(pathsOf(set), func(q fieldpath.Path) bool { return inside(q, p) })
}

func (t transfer) vanishedUpdate(m manager) bool { return m.operation == "Update" && t.vanished(m) }

func (t transfer) vanished(m manager) bool {
	return !t.is.has(m)
}

// mayMerge reports whether the server may have merged entries: an API server keeps ten Update entries, and merges no more than necessary to
// have room for the entry of the requester and for the bucket.
func (t transfer) mayMerge() bool {
	if t.was.updates() < 10 || t.is.updates() < 10 {
		return false
	}
	gone := 0
	for _, m := range t.was.managers() {
		if m.operation == "Update" && t.vanished(m) {
			gone++
		}
	}
	return gone <= t.was.updates()-10+2
}

// fromSMD reads a key in the form of managedFields.
func fromSMD(v smdvalue.Value) *value {
	raw, err := json.Marshal(v.Unstructured())
	return parsedOr(null, raw, err)
}

// parsedOr parses the encoding of a library, and returns an empty value of the kind if encoding or parsing failed.
func parsedOr(k kind, raw []byte, err error) *value {
	if err != nil {
		return &value{kind: k}
	}
	v, err := parse(raw)
	if err != nil {
		return &value{kind: k}
	}
	return v
}
