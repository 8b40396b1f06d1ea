package rawjson

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// Kind is the JSON type of a Value.
type Kind byte

// The kinds. An absent value is not null.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	List
	Object
)

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"absent", "null", "boolean", "number", "string", "list", "object"}[k]
}

// Value is one JSON value in its Document. The zero Value is absent.
type Value struct {
	doc        *Document
	start, end uint32
	// at is the index on the tape, for lists, objects, long strings and long numbers.
	at uint32
}

// Root returns the outermost value of the text.
func (d *Document) Root() Value {
	start := skipSpace(d.data, 0)
	v, _ := d.value(start, 0)
	return v
}

// value returns the value that starts at start, and the index of the extent on the tape after it. next is the index of the first
// extent at or after start.
func (d *Document) value(start int, next uint32) (Value, uint32) {
	data := d.data
	v := Value{doc: d, start: uint32(start)} //nolint:gosec // Scan has checked the length.
	switch data[start] {
	case '{', '[':
		c := &d.tape[next]
		v.at, v.end = next, c.end
		return v, c.next
	case '"':
		v.at = next
		v.end, next = d.stringEnd(v.start, next)
	default:
		if int(next) < len(d.tape) && d.tape[next].start == v.start {
			v.at, v.end = next, d.tape[next].end
			return v, next + 1
		}
		i := start + 1
		for i < len(data) && data[i] > ' ' && data[i] != ',' && data[i] != ']' && data[i] != '}' {
			i++
		}
		v.end = uint32(i) //nolint:gosec // Scan has checked the length.
	}
	return v, next
}

// stringEnd returns the end of the string that starts at start, and the index of the extent on the tape after it.
func (d *Document) stringEnd(start, next uint32) (end, after uint32) {
	if int(next) < len(d.tape) && d.tape[next].start == start {
		return d.tape[next].end, next + 1
	}
	return uint32(closingQuote(d.data, int(start)+1) + 1), next //nolint:gosec // Scan has checked the length.
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind {
	if v.doc == nil {
		return Absent
	}
	switch v.doc.data[v.start] {
	case '{':
		return Object
	case '[':
		return List
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		return Number
	}
}

// IsAbsent reports whether there is no value.
func (v Value) IsAbsent() bool { return v.doc == nil }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return v.doc != nil && v.doc.data[v.start] == '{' }

// IsList reports whether the value is a list.
func (v Value) IsList() bool { return v.doc != nil && v.doc.data[v.start] == '[' }

// IsScalar reports whether the value is a boolean, a number or a string.
func (v Value) IsScalar() bool {
	k := v.Kind()
	return k == Bool || k == Number || k == String
}

// Raw returns the bytes of the value in the text, nil if it is absent. The caller must not change them.
func (v Value) Raw() []byte {
	if v.doc == nil {
		return nil
	}
	return v.doc.data[v.start:v.end:v.end]
}

// MayHoldReplacement returns false only if no string in the value has the escape of U+FFFD. The character itself does not count.
func (v Value) MayHoldReplacement() bool { return v.doc != nil && v.doc.replaced }

// Extent returns the offsets of the start and of the end of the value in the text.
func (v Value) Extent() (begin, end int) { return int(v.start), int(v.end) }

// IsEmpty reports whether a list or object has no items or members. It returns true for every other value.
func (v Value) IsEmpty() bool {
	if !v.IsList() && !v.IsObject() {
		return true
	}
	return skipSpace(v.doc.data, int(v.start)+1)+1 == int(v.end)
}

// Items iterates over a list: for i := v.Items(); i.Next(); { i.Value() }. Other values have no items.
func (v Value) Items() Items {
	if !v.IsList() {
		return Items{}
	}
	return Items{doc: v.doc, pos: skipSpace(v.doc.data, int(v.start)+1), next: v.at + 1}
}

// Items is a position in a list.
type Items struct {
	doc   *Document
	pos   int
	next  uint32
	value Value
}

// Next moves to the next item and reports whether there is one.
func (i *Items) Next() bool {
	if i.doc == nil || i.doc.data[i.pos] == ']' {
		return false
	}
	i.value, i.next = i.doc.value(i.pos, i.next)
	i.pos = i.doc.after(int(i.value.end))
	return true
}

// Value returns the current item.
func (i *Items) Value() Value { return i.value }

// after returns the offset of the next item or member, or of the closing bracket, after a value that ends at i.
func (d *Document) after(i int) int {
	if d.data[i] == ',' && d.data[i+1] > ' ' {
		return i + 1
	}
	if i = skipSpace(d.data, i); d.data[i] == ',' {
		i = skipSpace(d.data, i+1)
	}
	return i
}

// Members iterates over an object: for m := v.Members(); m.Next(); { m.Name(), m.Value() }. Other values have no members.
func (v Value) Members() Members {
	if !v.IsObject() {
		return Members{}
	}
	return Members{doc: v.doc, pos: skipSpace(v.doc.data, int(v.start)+1), next: v.at + 1}
}

// Members is a position in an object.
type Members struct {
	doc   *Document
	pos   int
	next  uint32
	name  Name
	value Value
}

// Next moves to the next member and reports whether there is one.
func (m *Members) Next() bool {
	if m.doc == nil || m.doc.data[m.pos] == '}' {
		return false
	}
	data := m.doc.data
	end, next := m.doc.stringEnd(uint32(m.pos), m.next) //nolint:gosec // Scan has checked the length.
	m.name = Name{data[m.pos+1 : end-1]}
	i := int(end) + 1
	if data[i-1] != ':' || data[i] <= ' ' {
		i = skipSpace(data, skipSpace(data, int(end))+1)
	}
	m.value, m.next = m.doc.value(i, next)
	m.pos = m.doc.after(int(m.value.end))
	return true
}

// Name returns the name of the current member.
func (m *Members) Name() Name { return m.name }

// Value returns the value of the current member.
func (m *Members) Value() Value { return m.value }

// Get returns the value of the last member with the name. It is absent if there is none or v is not an object. Get iterates over
// the whole object.
func (v Value) Get(name string) Value {
	out, _ := v.Find(name)
	return out
}

// Find returns the value of the last member with the name, and the number of such members.
func (v Value) Find(name string) (Value, int) {
	var out Value
	n := 0
	for m := v.Members(); m.Next(); {
		if m.name.Is(name) {
			out = m.value
			n++
		}
	}
	return out, n
}

// Name is the name of a member in its spelling, without quotes.
type Name struct{ raw []byte }

// Raw returns the name in its spelling, without quotes. The caller must not change it.
func (n Name) Raw() []byte { return n.raw }

// Is reports whether the decoded name is text.
func (n Name) Is(text string) bool {
	if len(n.raw) == len(text) {
		return string(n.raw) == text && !n.escaped() // An escape sequence is longer than the text that it stands for.
	}
	// Six bytes stand for one at least, so a name that is longer is not decoded: an object is searched for many names.
	return len(n.raw) > len(text) && len(n.raw) <= len(`\u0000`)*len(text) && n.escaped() && n.String() == text
}

// Equal reports whether two decoded names are equal.
func (n Name) Equal(other Name) bool {
	if bytes.Equal(n.raw, other.raw) {
		return true
	}
	if len(n.raw) < long && len(other.raw) < long && !n.escaped() && !other.escaped() {
		return false // For longer names, searching for a backslash may cost more than comparing.
	}
	return equalTexts(n.raw, other.raw)
}

// Bytes returns the decoded name. The caller must not change it.
func (n Name) Bytes() []byte {
	return n.decoded(nil)
}

// decoded returns the decoded name, which an escaped name appends to out.
func (n Name) decoded(out []byte) []byte {
	if !n.escaped() {
		return n.raw
	}
	return unquote(slices.Grow(out, len(n.raw)), n.raw)
}

// sum returns a hash of the decoded name.
func (n Name) sum(seed maphash.Seed) uint64 {
	if n.escaped() {
		var room room
		return maphash.Bytes(seed, n.decoded(room[:0]))
	}
	return maphash.Bytes(seed, n.raw)
}

// String returns the decoded name.
func (n Name) String() string { return string(n.Bytes()) }

func (n Name) escaped() bool { return bytes.IndexByte(n.raw, '\\') >= 0 }

// Compare orders decoded names byte by byte.
func (n Name) Compare(other Name) int {
	if !n.escaped() && !other.escaped() {
		return bytes.Compare(n.raw, other.raw)
	}
	return compareTexts(n.raw, other.raw)
}

// compareTexts orders the insides of two strings by what they decode to.
func compareTexts(a, b []byte) int {
	x, y := reader{raw: a}, reader{raw: b}
	for {
		c, more := x.next()
		d, others := y.next()
		switch {
		case !more && !others:
			return 0
		case !more || others && c < d:
			return -1
		case !others || c > d:
			return 1
		}
	}
}
