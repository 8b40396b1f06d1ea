package rawjson

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"
)

// Comparison compares values of two documents. It stores the last range of equal bytes, so that a walk down to a change, which
// compares a container and then its contents, looks at each byte once. The zero Comparison is ready to use. Only one goroutine may
// use it.
type Comparison struct {
	// Verbatim means that numbers are equal only if their texts are.
	Verbatim bool
	// run is of aDoc and bDoc.
	aDoc, bDoc *Document
	run        run
}

// run is a range of bytes that is equal in two texts and that cannot be extended within the values that were compared.
type run struct {
	// a and b are the offsets of the range in the two texts, n is its length in bytes.
	a, b, n uint32
	// differs means that the next bytes differ. Otherwise the comparison ended there.
	differs bool
}

// covers reports whether two offsets are in the range, at the same distance from its start.
func (r *run) covers(a, b uint32) bool {
	return a >= r.a && a <= r.a+r.n && a-r.a == b-r.b
}

// same reports whether two values of the same length have the same bytes. They start at the offsets a and b.
func (r *run) same(x, y []byte, a, b uint32) bool {
	size := uint32(len(x)) //nolint:gosec // Scan has checked the length.
	if r.covers(a, b) {
		switch until := r.a + r.n; {
		case a+size <= until:
			return true
		case r.differs:
			return false
		}
	}
	n := commonPrefix(x, y)
	*r = run{a, b, n, n < size}
	return !r.differs
}

// Prefix is what a Comparison knows about two values whose bytes differ: how many bytes are equal from their starts. The zero Prefix
// knows nothing.
type Prefix uint32

// Last returns what the last comparison found about two values whose bytes differ.
func (c *Comparison) Last(a, b Value) Prefix {
	if a.doc == nil || b.doc == nil || a.doc != c.aDoc || b.doc != c.bDoc || !c.run.differs || !c.run.covers(a.start, b.start) {
		return 0
	}
	return Prefix(c.run.a + c.run.n - a.start + 1)
}

// Recall makes the next comparisons start from a result of Last for the same two values.
func (c *Comparison) Recall(a, b Value, known Prefix) {
	c.aDoc, c.bDoc, c.run = a.doc, b.doc, run{}
	if known > 0 {
		c.run = run{a.start, b.start, uint32(known) - 1, true}
	}
}

// Same reports whether two values have the same bytes. Two absent values are the same.
func (c *Comparison) Same(a, b Value) bool {
	if a.doc == nil || b.doc == nil {
		return a.doc == b.doc
	}
	if a.end-a.start != b.end-b.start {
		return false
	}
	if a.doc != c.aDoc || b.doc != c.bDoc {
		c.aDoc, c.bDoc, c.run = a.doc, b.doc, run{}
	}
	return c.run.same(a.Raw(), b.Raw(), a.start, b.start)
}

// commonPrefix returns how many bytes are equal from the start. Both texts must have the same length.
func commonPrefix(a, b []byte) uint32 {
	const block = 512
	i := 0
	for i+block <= len(a) && bytes.Equal(a[i:i+block], b[i:i+block]) {
		i += block
	}
	for ; i+8 <= len(a); i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return uint32(i + bits.TrailingZeros64(x)/8) //nolint:gosec // Scan has checked the length.
		}
	}
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return uint32(i) //nolint:gosec // Scan has checked the length.
}

// Equal reports whether two values are equal as JSON: the order of members and the spelling of numbers and strings do not matter.
// With Verbatim the spelling of numbers matters.
// If a name occurs twice in an object, it is undefined which member counts, so only the same sequence of members is equal. Absent
// is not equal to null.
func (c *Comparison) Equal(a, b Value) bool {
	if c.Same(a, b) {
		return true
	}
	kind := a.Kind()
	if kind != b.Kind() {
		return false
	}
	switch kind {
	case Number:
		if c.Verbatim {
			return false
		}
		// The sum reads a long number once, however many others it is compared with.
		return (!a.isLong() && !b.isLong() || a.Sum() == b.Sum()) && equalNumbers(a.Raw(), b.Raw())
	case String:
		return a.inside().Equal(b.inside())
	case List, Object:
		// The sums of most different containers differ. A sum is computed once per container.
		if a.Sum() != b.Sum() {
			return false
		}
		if kind == List {
			return c.equalLists(a, b)
		}
		return c.equalObjects(a, b)
	case Absent, Null, Bool:
	}
	return false
}

func (c *Comparison) equalLists(a, b Value) bool {
	x, y := a.Items(), b.Items()
	for x.Next() {
		if !y.Next() || !c.Equal(x.value, y.value) {
			return false
		}
	}
	return !y.Next()
}

func (c *Comparison) equalObjects(a, b Value) bool {
	// Compare only the names first: values must be compared once only, or each level would double the work.
	if !sameNames(a, b) {
		return c.equalUnordered(a, b)
	}
	x, y := a.Members(), b.Members()
	for x.Next() && y.Next() {
		if !c.Equal(x.value, y.value) {
			return false
		}
	}
	return true
}

// sameNames reports whether two objects have the same names in the same order.
func sameNames(a, b Value) bool {
	x, y := a.Members(), b.Members()
	for x.Next() {
		if !y.Next() || !x.name.Equal(y.name) {
			return false
		}
	}
	return !y.Next()
}

// equalUnordered compares objects whose members are in a different order.
func (c *Comparison) equalUnordered(a, b Value) bool {
	names := map[string]Value{}
	n := 0
	for m := b.Members(); m.Next(); n++ {
		names[m.name.String()] = m.value
	}
	if len(names) != n {
		return false // A name occurs twice.
	}
	for m := a.Members(); m.Next(); n-- {
		other, known := names[m.name.String()]
		if !known || !c.Equal(m.value, other) {
			return false
		}
		delete(names, m.name.String())
	}
	return n == 0
}

// seed makes sums differ between processes, so that an attacker cannot prepare values with equal sums.
var seed = maphash.MakeSeed()

// Sum returns a number that is the same for equal values within one process. Different values rarely have the same sum.
func (v Value) Sum() uint64 {
	switch kind := v.Kind(); kind {
	case String, Number:
		if !v.isLong() {
			return v.contents()
		}
		return v.remembered()
	case List, Object:
		return v.remembered()
	case Absent, Null, Bool:
		return maphash.String(seed, strconv.Itoa(int(kind))+string(v.Raw()))
	}
	return 0
}

// remembered returns the sum of a value on the tape, and computes it only once.
func (v Value) remembered() uint64 {
	d := v.doc
	if len(d.sums) < len(d.tape) {
		d.sums = slices.Grow(d.sums[:0], len(d.tape))[:len(d.tape)]
		clear(d.sums)
	}
	if d.sums[v.at] == 0 {
		d.sums[v.at] = max(v.contents(), 1)
	}
	return d.sums[v.at]
}

// isLong reports whether a string or number is on the tape.
func (v Value) isLong() bool { return v.end-v.start >= long }

// contents computes the sum of a string, a number, or the contents of a container. The order of members does not matter.
func (v Value) contents() uint64 {
	switch v.Kind() {
	case String:
		return maphash.Bytes(seed, v.Bytes()) + uint64(String)
	case Number:
		if i, ok := v.Int(); ok {
			return maphash.Comparable(seed, i)
		}
		var room room
		return maphash.Bytes(seed, appendNormal(room[:0], v.Raw())) + uint64(Number)
	case Absent, Null, Bool, List, Object:
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for i := v.Items(); i.Next(); {
		maphash.WriteComparable(&h, i.value.Sum())
	}
	var members uint64
	for m := v.Members(); m.Next(); {
		members += maphash.Comparable(seed, [2]uint64{m.name.sum(seed), m.value.Sum()})
	}
	maphash.WriteComparable(&h, [2]uint64{uint64(v.Kind()), members})
	return h.Sum64()
}
