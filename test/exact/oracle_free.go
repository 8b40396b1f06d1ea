package exact

import (
	"encoding/json"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// lossIsFree: with the value, by the server's merge of old entries, or as the shell of something in it that changed.
func (t transfer) lossIsFree(m who, p fieldpath.Path) bool {
	if m.operation == "Update" && t.vanished(m) && t.mayMerge() && t.is.of(who{"ancient-changes", "Update", ""}).Has(p) {
		return true
	}
	if !t.withValue(m, p, t.was, t.is) {
		return false
	}
	item := p
	if len(p) > 1 && p[len(p)-1].Key == nil {
		item = p[:len(p)-1]
	}
	if e := t.follow(p); item[len(item)-1].Key == nil || !e.container && !e.keyField {
		return true
	}
	// To own an item's shell is to keep the item: it goes only with something inside that changed and that the
	// manager lost as well.
	free := false
	t.was.of(m).Difference(t.is.of(m)).Iterate(func(lost fieldpath.Path) {
		free = free || len(lost) > len(item) && lost[:len(item)].Equals(item) && t.follow(lost).changed(t.oracle)
	})
	return free
}

func (t transfer) gainIsFree(m who, p fieldpath.Path) bool {
	if t.withValue(m, p, t.is, t.was) {
		return true
	}
	switch {
	case m.operation != "Update":
		return false
	case m.name == "before-first-apply":
		return len(t.was) == 0
	case m.name == "ancient-changes" && t.mayMerge():
		for _, other := range t.was.managers() {
			if other.operation == "Update" && t.vanished(other) && t.was.of(other).Has(p) {
				return true
			}
		}
	}
	return false
}

// withValue: the value changed, so that it is charged itself; or the path is the shell of something that stays,
// and the manager holds nothing in it where the path lacks. A name that only entries of another version
// know changed if what is nearest above it did.
func (t transfer) withValue(m who, p fieldpath.Path, holding, lacking ownerList) bool {
	e := t.follow(p)
	switch {
	case e.changed(t.oracle):
		return true
	case e.missing && e.above && t.onlyOtherVersions(m, p, holding):
		return true
	case e.container:
		return !holdsBelow(lacking.of(m), p)
	case e.keyField:
		return !holdsBelow(lacking.of(m), p[:len(p)-1])
	}
	return false
}

func (t transfer) onlyOtherVersions(m who, p fieldpath.Path, l ownerList) bool {
	version, known := t.version()
	for _, e := range l {
		if e.who == m && e.set != nil && e.set.Has(p) && known && e.version == version {
			return false
		}
	}
	return true
}

func holdsBelow(set *fieldpath.Set, p fieldpath.Path) bool {
	below := false
	set.Iterate(func(q fieldpath.Path) {
		below = below || len(q) > len(p) && q[:len(p)].Equals(p)
	})
	return below
}

func (t transfer) vanished(m who) bool {
	return !t.is.has(m)
}

// mayMerge: an API server keeps ten Update entries, and merges no more than it must to have room for the
// requester's and for the bucket.
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

// fromSMD reads a key as managedFields hold it.
func fromSMD(v smdvalue.Value) *value {
	raw, err := json.Marshal(v.Unstructured())
	if err != nil {
		return &value{kind: null}
	}
	out, err := parse(raw)
	if err != nil {
		return &value{kind: null}
	}
	return out
}
