package diff

import "github.com/fieldperm/fieldperm/internal/rawjson"

// A review is JSON. An object that is sent and stored as protobuf has contents that JSON does not show (D10):
//
//   - The unused half of an IntOrString. Controllers compare it. The API server compares it too, and raises the generation.
//   - The bytes of a string that is not UTF-8. JSON has the escape of U+FFFD for each of them.
//   - The text of a RawExtension, which the API server stores byte for byte. 1 and 1.0 are different texts for a reader in Go.
//
// Kinds for which schema.Kind.ShownInFull is true have no such contents, except strings, which an API server can store as CBOR.

// ChangesUnseen reports whether the API server raised the generation for no change that the review shows.
func (d *Differ) ChangesUnseen() bool {
	if d.Create || d.content || d.Kind.ShownInFull() {
		return false
	}
	was, once := valueAt(d.Old, generation)
	is, again := valueAt(d.New, generation)
	// Where a name occurs twice, which no API server writes, the difference is a change.
	return once && again && !d.Same.Equal(was, is) && !d.showsCause(was, is)
}

// Contents reports everything in the contents of the new object, as if it were added inside a new object.
func (d *Differ) Contents(report func(Change)) {
	d.report = report
	for m := d.New.Members(); m.Next(); {
		if name := m.Name().Bytes(); isContent(string(name)) {
			d.key(d.Root, name, rawjson.Value{}, m.Value(), (*Differ).within)
		}
	}
}

var generation = []string{"metadata", "generation"}

// isContent reports whether a change of a member of the object raises the generation of any kind.
func isContent(name string) bool {
	switch name {
	case "", "apiVersion", "kind", "metadata", "status":
		return false
	}
	return true
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
