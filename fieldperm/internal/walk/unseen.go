package walk

import (
	"bytes"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// A review is JSON. An object that is sent and stored as protobuf has contents that JSON does not show (D10):
//
//   - The unused half of an IntOrString. Controllers compare it. The API server compares it too, and raises the generation.
//   - The bytes of a string that is not UTF-8. JSON has U+FFFD for each of them.
//   - The text of a RawExtension, which the API server stores byte for byte. 1 and 1.0 are different texts for a reader in Go.
//
// Kinds for which schema.Kind.ShownInFull is true have no such contents.

// chargeUnseen charges the object as a whole if the API server raised its generation for no change that the review shows. It also charges
// the barriers of every value, because each may have changed.
func (d *Differ) chargeUnseen() {
	// A lossy version is charged as a whole in any case.
	if d.Create || d.Kind.ShownInFull() || d.Kind.Lossy() {
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
		d.Out[i].Operation, d.Out[i].Instead = change.Modified, "the API server sees a change that the review does not show: send the object as JSON, and change what you want to change"
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

// showsCause reports whether the review shows a change that raises the generation from was to is: of the contents, or of a part of the
// metadata for which this was observed (D13).
func (d *Differ) showsCause(was, is rawjson.Value) bool {
	for i := range d.Out {
		if top := d.Out[i].Path.Top(); d.Out[i].Operation != change.Ownership && top != "" && isContent(top) {
			return true
		}
	}
	// The changes may be free, so the values decide.
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

// UnequalStrings returns the text of the new object in a form in which no string with U+FFFD equals a string of the old one. It reports
// false if the text can stay as it is, because not both have such a string.
func UnequalStrings(kind *schema.Kind, old, object rawjson.Value) ([]byte, bool) {
	if kind.ShownInFull() || !old.MayHoldReplacement() || !object.MayHoldReplacement() {
		return nil, false
	}
	out, new := []byte(nil), object.Raw()
	for _, mark := range [][]byte{replacement, escaped} {
		for from := 0; ; {
			at := bytes.Index(new[from:], mark)
			if at < 0 {
				break
			}
			at += from
			from = at + len(mark)
			if mark[0] == '\\' && isQuoted(new, at) {
				continue
			}
			if out == nil {
				out = bytes.Clone(new)
			}
			// U+FFFF is as long, and the API server writes it for no byte.
			out[from-1] += 'f' - 'd'
		}
	}
	return out, out != nil
}

// replacement is U+FFFD, and escaped is the form in which encoding/json writes it for bytes that are not UTF-8.
var replacement, escaped = []byte("\uFFFD"), []byte(`\ufffd`)

// isQuoted reports whether the backslash at a position belongs to the escape of another backslash before it.
func isQuoted(text []byte, at int) bool {
	n := 0
	for at-n > 0 && text[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}
