package walk

import (
	"bytes"
	"crypto/rand"
	"slices"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm/change"
	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
)

// A review is JSON. An object that is sent and stored as protobuf has contents that JSON does not show (D10):
//
//   - The unused half of an IntOrString. Controllers compare it. The API server compares it too, and raises the generation.
//   - The bytes of a string that is not UTF-8. JSON has the escape of U+FFFD for each of them.
//   - The text of a RawExtension, which the API server stores byte for byte. 1 and 1.0 are different texts for a reader in Go.
//
// Kinds for which schema.Kind.ShownInFull is true have no such contents, except strings, which an API server can store as CBOR.

// chargePlanted charges the object as a whole if the write adds bytes that are not UTF-8.
func (d *Differ) chargePlanted() {
	if !d.Planted {
		return
	}
	d.Charge(d.Root, change.Modified)
	d.Out[len(d.Out)-1].Instead = "the object gets a string that is not UTF-8, which JSON does not show: send UTF-8"
}

// chargeUnseen charges the object as a whole if the API server raised its generation for no change that the review shows. It also charges
// the barriers of every value, because each may have changed.
func (d *Differ) chargeUnseen() {
	// A lossy version is charged as a whole in any case.
	if d.Create || d.Kind.ShownInFull() || d.Kind.Lossy() {
		return
	}
	if d.chargesContent() {
		return
	}
	was, once := valueAt(d.Old, generation)
	is, again := valueAt(d.New, generation)
	if !once || !again { // A name occurs twice, which no API server writes. The walk has charged the difference.
		return
	}
	if d.Same.Equal(was, is) || d.showsCause(was, is) {
		return
	}
	begin := len(d.Out)
	d.Charge(d.Root, change.Modified)
	// The values of the review say nothing about the values behind them, so a conditional barrier holds always.
	d.isOwning = true
	for m := d.New.Members(); m.Next(); {
		if name := m.Name().Bytes(); isContent(string(name)) {
			d.Key(d.Root, name, rawjson.Value{}, m.Value(), guardedBelow(d.Root))
		}
	}
	d.isOwning = false
	for i := begin; i < len(d.Out); i++ {
		d.Out[i].Operation, d.Out[i].Instead = change.Modified, "the API server sees a change that the review does not show: send the object as JSON; if you did, JSON drops what another client stored: then a user who may do so writes any field of the specification once"
	}
}

var generation = []string{"metadata", "generation"}

// isContent reports whether a change of a member of the object raises the generation of any kind.
func isContent(name string) bool {
	switch name {
	case "apiVersion", "kind", "metadata", "status":
		return false
	}
	return true
}

// chargesContent reports whether a change of the contents is charged, which raises the generation of any kind.
func (d *Differ) chargesContent() bool {
	return slices.ContainsFunc(d.Out, func(r change.Requirement) bool {
		top := r.Path.Top()
		return r.Operation != change.Ownership && top != "" && isContent(top)
	})
}

// showsCause reports whether the review shows a change that raises the generation from was to is: of the contents, or of a part of the
// metadata for which this was observed (D13).
func (d *Differ) showsCause(was, is rawjson.Value) bool {
	// The changes of the contents may be free, so the values decide.
	for m := d.New.Members(); m.Next(); {
		if name := m.Name().String(); isContent(name) {
			if old, _ := d.Old.Find(name); !d.Same.Equal(old, m.Value()) {
				return true
			}
		}
	}
	node := d.Kind.Root
	for _, name := range generation {
		if node.Map() == nil {
			return false
		}
		node = node.Map().Child(name)
	}
	w := node.Written()
	return w != nil && d.writtenByServer(w, false, was, is)
}

// Apart are two objects in which strings with bytes that are not UTF-8 equal no string of the other object.
type Apart struct {
	// Old and New are the texts, nil if an object has no such string.
	Old, New []byte
	// Planted means that the new object has more such bytes than the old one. Nothing can be compared with them, so that every later
	// write of the object would need the verb of the string: a user without granular:* must not lock out others.
	Planted bool
}

// SetApart returns the objects for the comparison. The API server writes the escape of U+FFFD for each byte that is not UTF-8, and U+FFFD
// itself for the character. A random text in the string, which no user can foresee, makes it unequal to every string of the other object.
func SetApart(old, new rawjson.Value) Apart {
	if !old.MayHoldReplacement() && !new.MayHoldReplacement() {
		return Apart{}
	}
	before, was := setApart(old)
	after, is := setApart(new)
	return Apart{Old: before, New: after, Planted: !old.IsAbsent() && is > was}
}

// setApart returns the text of an object with a random text in each such string, nil if there is none, and the number of such bytes.
func setApart(object rawjson.Value) (out []byte, n int) {
	text, from, last := object.Raw(), 0, 0
	apart := "<not UTF-8, " + rand.Text() + ">"
	for at := nextEscape(text, 0); at >= 0; at = nextEscape(text, last) {
		// One random text is enough for a string. The text of an object with many such bytes must not become many times as long.
		if n == 0 || hasQuote(text[last:at]) {
			out = append(append(out, text[from:at]...), apart...)
			from = at
		}
		last = at + len(escaped)
		n++
	}
	if n == 0 {
		return nil, 0
	}
	return append(out, text[from:]...), n
}

// hasQuote reports whether a text that begins inside a string has a quotation mark that ends or begins a string.
func hasQuote(text []byte) bool {
	for from := 0; ; {
		at := bytes.IndexByte(text[from:], '"')
		if at < 0 {
			return false
		}
		if at += from; !isQuoted(text, at) {
			return true
		}
		from = at + 1
	}
}

// escaped is the form in which encoding/json writes a byte that is not UTF-8.
var escaped = []byte(`\ufffd`)

// nextEscape returns the position of the next such byte, -1 if there is none.
func nextEscape(text []byte, from int) int {
	for {
		at := bytes.Index(text[from:], escaped)
		if at < 0 {
			return -1
		}
		if at += from; !isQuoted(text, at) {
			return at
		}
		from = at + len(escaped)
	}
}

// isQuoted reports whether the backslash at a position belongs to the escape of another backslash before it.
func isQuoted(text []byte, at int) bool {
	n := 0
	for at-n > 0 && text[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}
