package rawjson

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// JSON parsers disagree about an object in which a name occurs twice. A scan suspects the objects whose names are not in ascending order and of which
// two have the same hash, and then looks at the names of these only. An encoder writes the names of maps in ascending order. Parts that were copied
// from a model are not looked at again: the model is in the same document.

// level is what is known of the names in an open object.
type level struct {
	// met has one bit for each hash of a name.
	met [8]uint64
	// last is the last name, and prefix its first bytes as a number.
	last   []byte
	prefix uint64
	// alike means that two names have one hash, falls that the names are not in ascending order.
	alike, falls bool
}

// mayRepeat adds a name in its spelling, and returns false only if it differs from all names before it.
func (l *level) mayRepeat(raw []byte) bool {
	prefix := prefixOf(raw)
	l.falls = l.falls || prefix < l.prefix || prefix == l.prefix && bytes.Compare(raw, l.last) <= 0 && l.last != nil
	l.prefix, l.last = prefix, raw
	sum := signature(raw)
	word, bit := &l.met[sum>>61], uint64(1)<<(sum>>55&63)
	l.alike = l.alike || *word&bit != 0
	*word |= bit
	return l.alike && l.falls || isRespelled(raw)
}

// signature returns different numbers for most different names.
func signature(raw []byte) uint64 {
	var first, last uint64
	switch size := len(raw); {
	case size >= 8:
		first, last = binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[size-8:])
	case size >= 4:
		first, last = uint64(binary.LittleEndian.Uint32(raw)), uint64(binary.LittleEndian.Uint32(raw[size-4:]))
	default:
		for _, c := range raw {
			first = first<<8 | uint64(c)
		}
	}
	const odd, odder = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	return (first*odd^last)*odder ^ uint64(len(raw))
}

// prefixOf returns the first eight bytes as a number that orders names as they do.
func prefixOf(raw []byte) uint64 {
	if len(raw) >= 8 {
		return binary.BigEndian.Uint64(raw)
	}
	var out uint64
	for i, c := range raw {
		out |= uint64(c) << (56 - 8*i)
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
