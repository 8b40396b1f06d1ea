package rawjson

import (
	"hash/maphash"
	"math/bits"
)

// Index finds the members of one object, or the items of one list, without a scan of the others. It takes at most 32 bytes for each member and
// 8 for each item, which is about four times their text, and holds no decoded values. It is immutable and safe for concurrent use. The zero
// Index is empty. It must not be used after the release of the document.
type Index struct {
	of Value
	n  int
	// places has the items in their order, or the members by the hash of their names, with linear probing. The zero place is empty.
	places []place
	seed   maphash.Seed
	// repeated has the places of the names that occur more than once. Such a place has the last of the members.
	repeated map[int]struct{}
}

// place is where an item or member starts: the arguments of Items and Members.
type place struct{ pos, next uint32 }

// NewIndex reads a list or an object once. The index of another value is empty.
func NewIndex(v Value) *Index {
	x := &Index{of: v}
	switch v.Kind() {
	case List:
		x.addItems()
	case Object:
		x.addMembers()
	case Absent, Null, Bool, Number, String:
	}
	return x
}

func (x *Index) addItems() {
	for i := x.of.Items(); i.Next(); {
		x.n++
	}
	x.places = make([]place, 0, x.n)
	for i := x.of.Items(); ; {
		at := place{uint32(i.pos), i.next} //nolint:gosec // Scan has checked the length.
		if !i.Next() {
			return
		}
		x.places = append(x.places, at)
	}
}

func (x *Index) addMembers() {
	for m := x.of.Members(); m.Next(); {
		x.n++
	}
	if x.n == 0 {
		return
	}
	// At most half of the places are taken.
	x.places, x.seed = make([]place, 2<<bits.Len(uint(x.n-1))), maphash.MakeSeed()
	for m := x.of.Members(); ; {
		at := place{uint32(m.pos), m.next} //nolint:gosec // Scan has checked the length.
		if !m.Next() {
			return
		}
		i, known := x.search(m.name.sum(x.seed), m.name.Equal)
		if known {
			if x.repeated == nil {
				x.repeated = map[int]struct{}{}
			}
			x.repeated[i] = struct{}{}
		}
		x.places[i] = at
	}
}

// search returns the place of a name, or the empty place for it.
func (x *Index) search(hash uint64, is func(Name) bool) (int, bool) {
	mask := len(x.places) - 1
	for i := int(hash & uint64(mask)); ; i = (i + 1) & mask { //nolint:gosec // The mask is positive.
		if x.places[i] == (place{}) {
			return i, false
		}
		if m := x.member(i); is(m.name) {
			return i, true
		}
	}
}

// member returns the member at a place that is not empty.
func (x *Index) member(i int) Members {
	m := Members{doc: x.of.doc, pos: int(x.places[i].pos), next: x.places[i].next}
	m.Next()
	return m
}

// Len returns the number of items or members. A name that occurs twice counts twice.
func (x *Index) Len() int { return x.n }

// Ambiguous reports whether a name occurs twice.
func (x *Index) Ambiguous() bool { return len(x.repeated) > 0 }

// Find returns the value of the last member with the name, and 0 if there is none, 1 if there is one, and 2 if there are more.
func (x *Index) Find(name string) (Value, int) {
	if !x.of.IsObject() || len(x.places) == 0 {
		return Value{}, 0
	}
	i, known := x.search(maphash.String(x.seed, name), func(n Name) bool { return n.Is(name) })
	if !known {
		return Value{}, 0
	}
	m := x.member(i)
	if _, more := x.repeated[i]; more {
		return m.value, 2
	}
	return m.value, 1
}

// Item returns the item at a position, absent if there is none.
func (x *Index) Item(i int) Value {
	if !x.of.IsList() || i < 0 || i >= len(x.places) {
		return Value{}
	}
	items := Items{doc: x.of.doc, pos: int(x.places[i].pos), next: x.places[i].next}
	items.Next()
	return items.Value()
}
