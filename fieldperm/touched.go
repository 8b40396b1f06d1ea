package fieldperm

import (
	"slices"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// noFields is FieldsV1 of an entry that has none.
const noFields = 1

// touches finds entries that are no longer quite the same.
type touches struct {
	old, new *managedFields
	same     rawjson.Comparison
	// stay are the old entries by all that tells them apart; nil until somebody asks.
	stay map[entryIdentity]bool
	// gone are the entries of a manager whose versions it no longer has, by the sums of their fields.
	gone map[manager]map[uint64][]int
}

// touched counts the entries whose fields stayed and whose time or version changed, up to 2. An API server
// touches only the entry of who makes the request, and gives it the version of the request: an entry
// with another new version counts twice, because its paths are to mean something else.
func touched(old, new *managedFields, version rawjson.Value) int {
	t := &touches{old: old, new: new, gone: map[manager]map[uint64][]int{}}
	n := 0
	for i := range new.entries {
		if n > 1 {
			break
		}
		is := &new.entries[i]
		was := old.ofVersion[is.versioned]
		switch {
		case len(was) > 0:
			first := &old.entries[was[0]]
			if first.time != is.time && t.equal(first, is) && !t.stays(is) {
				n++
			}
		case t.moved(is):
			n++
			if !version.Is(is.version) {
				n++
			}
		}
	}
	return n
}

// entryIdentity has the sum of the fields in place of them.
type entryIdentity struct {
	versioned
	time string
	sum  uint64
}

func (e *managedEntry) identity() entryIdentity { return entryIdentity{e.versioned, e.time, e.sum()} }

// stays reports whether one of the old entries is just the same.
func (t *touches) stays(is *managedEntry) bool {
	if t.stay == nil {
		t.stay = map[entryIdentity]bool{}
		for i := range t.old.entries {
			t.stay[t.old.entries[i].identity()] = true
		}
	}
	return t.stay[is.identity()]
}

// moved reports whether an old entry has come to be the one given, of another version.
func (t *touches) moved(is *managedEntry) bool {
	gone, known := t.gone[is.manager]
	if !known {
		gone = map[uint64][]int{}
		for _, i := range t.old.of[is.manager] {
			if e := &t.old.entries[i]; len(t.new.ofVersion[e.versioned]) == 0 {
				gone[e.sum()] = append(gone[e.sum()], i)
			}
		}
		t.gone[is.manager] = gone
	}
	return slices.ContainsFunc(gone[is.sum()], func(i int) bool { return t.equal(&t.old.entries[i], is) })
}

// equal reports whether two entries own the same. Fields that mean the same are equal as JSON, for those
// that are not have been refused.
func (t *touches) equal(a, b *managedEntry) bool {
	return t.same.Equal(a.raw, b.raw) || a.ownsNothing() && b.ownsNothing()
}

func (e *managedEntry) ownsNothing() bool { return e.raw.IsEmpty() }

// sum is the same for entries that own the same.
func (e *managedEntry) sum() uint64 {
	if e.ownsNothing() {
		return noFields
	}
	return e.raw.Sum()
}
