package rawjson

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// JSON parsers disagree about an object in which a name occurs twice. A scan suspects the objects whose names are not in ascending order and of which
// two have the same hash, and then looks at the names of these only. An encoder writes the names of maps in ascending order. Parts that were copied
// from a model are not looked at again: the model is in the same document.

// level is what is known of the names in an open object.
type level struct {
	// met has one bit for each hash of a name.
	met [16]uint64
	// last is the last name, and first its first bytes as a number.
	last  []byte
	first uint64
	// alike means that two names have one hash, falls that the names are not in ascending order.
	alike, falls bool
}

// mayRepeat adds the name text[begin:end]. It returns false only if its spelling differs from that of all names before it.
func (l *level) mayRepeat(text []byte, begin, end int) bool {
	first := head(text, begin, end)
	l.falls = l.falls || first < l.first || first == l.first && bytes.Compare(text[begin:end], l.last) <= 0 && l.last != nil
	l.first, l.last = first, text[begin:end]
	sum := first
	if end-begin > 8 {
		sum ^= binary.LittleEndian.Uint64(text[end-8:])
	}
	sum = (sum ^ sum>>32) * 0x9e3779b97f4a7c15
	word, bit := &l.met[sum>>60], uint64(1)<<(sum>>54&63)
	l.alike = l.alike || *word&bit != 0
	*word |= bit
	return l.alike && l.falls
}

// head returns the first eight bytes of text[begin:end] as a number that orders texts as they do.
func head(text []byte, begin, end int) uint64 {
	if begin+8 > len(text) {
		var last [8]byte
		copy(last[:], text[begin:end])
		return binary.BigEndian.Uint64(last[:])
	}
	out := binary.BigEndian.Uint64(text[begin:])
	if n := end - begin; n < 8 {
		out &^= math.MaxUint64 >> (8 * n)
	}
	return out
}

// isRespelled reports whether a name has an escape sequence that it could be written without. Two names without such a sequence are equal only if their bytes are.
func isRespelled(raw []byte) bool {
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return false
		}
		if c := raw[at+1]; c != '"' && c != '\\' {
			return true
		}
		raw = raw[at+2:]
	}
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
	return v.hasNameTwice()
}

// NamesRepeat reports whether a name occurs twice in any object of the value's document.
func (v Value) NamesRepeat() bool { return v.doc != nil && v.doc.repeats }

// Ambiguous reports whether a name occurs twice in an object. JSON parsers may disagree about such an object.
func (v Value) Ambiguous() bool { return v.NamesRepeat() && v.hasNameTwice() }

// hasNameTwice is Ambiguous without what the scan has found. It takes eight bytes for each member, unless two names have one sum.
func (v Value) hasNameTwice() bool {
	n := 0
	for m := v.Members(); m.Next(); {
		n++
	}
	sums := make([]uint64, 0, n)
	for m := v.Members(); m.Next(); {
		sums = append(sums, m.name.sum(seed))
	}
	slices.Sort(sums)
	if len(slices.Compact(sums)) == n {
		return false
	}
	names := map[string]struct{}{}
	for m := v.Members(); m.Next(); {
		names[m.name.String()] = struct{}{}
	}
	return len(names) < n
}
