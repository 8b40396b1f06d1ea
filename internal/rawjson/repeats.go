package rawjson

import "bytes"

// JSON parsers disagree about an object in which a name occurs twice. A scan suspects the objects with two names of the same hash, and then looks
// at the names of these only. Parts that were copied from a model are not looked at again: the model is in the same document.

// level has one bit for each hash of a name in an open object.
type level [4]uint64

// mayRepeat adds a name in its spelling, and returns false only if it differs from all names before it.
func (l *level) mayRepeat(raw []byte) bool {
	sum := signature(raw)
	word, bit := &l[sum>>62], uint64(1)<<(sum>>56&63)
	met := *word&bit != 0
	*word |= bit
	return met || bytes.IndexByte(raw, '\\') >= 0
}

// enter begins an object at a depth.
func (d *Document) enter(depth int) {
	for len(d.levels) <= depth {
		d.levels = append(d.levels, level{})
	}
	d.levels[depth] = level{}
}

// suspect notes that a name may occur twice in the object that is open.
func (d *Document) suspect(open uint32) {
	if n := len(d.suspects); n == 0 || d.suspects[n-1] != open {
		d.suspects = append(d.suspects, open)
	}
}

// repeatsAt reports whether a name occurs twice in the object at an index of the tape.
func (d *Document) repeatsAt(at uint32) bool {
	v, _ := d.value(int(d.tape[at].start), at)
	return v.Ambiguous()
}

// NamesRepeat reports whether a name occurs twice in any object of the value's document.
func (v Value) NamesRepeat() bool { return v.doc != nil && v.doc.repeats }
