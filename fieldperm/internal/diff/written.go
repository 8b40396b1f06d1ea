package diff

import (
	"slices"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// writtenByServer reports whether the API server itself makes the change from old to new, because another field changes in this request (D13).
// constant asks for a value that it gives to every client that does not set the field: sending it gains nothing.
func (d *Differ) writtenByServer(w *schema.Written, constant bool, old, new rawjson.Value) bool {
	cases := w.Cases()
	for i := range cases {
		if (!constant || cases[i].Constant()) && d.written(&cases[i], old, new) {
			return true
		}
	}
	return false
}

// unasked reports whether a new object has the value that the API server gives to a client that does not set the node: the declared
// default (C5) or a constant (D13).
func (d *Differ) unasked(p *Place, old, new rawjson.Value) bool {
	if !d.Create {
		return false
	}
	w := p.Node.Written()
	return isDefault(p.Node.Default(), new) || w != nil && d.writtenByServer(w, true, old, new)
}

// FillsIn reports whether the API server gives this value to any new object that does not set the node, whatever else the object has. A
// declared default does not count, because it comes with the struct that contains it.
func (d *Differ) FillsIn(p *Place, v rawjson.Value) bool {
	w := p.Node.Written()
	return w != nil && slices.ContainsFunc(w.Cases(), func(c schema.WrittenCase) bool {
		return c.Constant() && len(c.Cause()) == 0 && len(c.Without()) == 0 && c.ByServer(nil, d.native(v), nil, nil)
	})
}

func (d *Differ) written(c *schema.WrittenCase, old, new rawjson.Value) bool {
	if c.OnCreate() != d.Create {
		return false
	}
	if len(c.Without()) > 0 {
		if v, found := valueAt(d.New, c.Without()); !found || !v.IsAbsent() {
			return false
		}
	}
	original, found := valueAt(d.New, c.Original())
	if len(c.Cause()) == 0 {
		// The cause is the creation of the object.
		return found && c.OnCreate() && c.ByServer(d.native(old), d.native(new), nil, d.native(original))
	}
	was, before := valueAt(d.Old, c.Cause())
	is, after := valueAt(d.New, c.Cause())
	if !found || !before || !after || d.Same.Equal(was, is) {
		return false
	}
	return c.ByServer(d.native(old), d.native(new), d.native(is), d.native(original))
}

// native returns a value as schema.WrittenCase takes it. It caches lists and objects, because several cases may be about one.
func (d *Differ) native(v rawjson.Value) any {
	if d.decoded == nil {
		d.decoded = map[rawjson.Value]any{}
	}
	return rawjson.Native(v, d.decoded)
}

// valueAt follows names from an object's root; the result is absent if they lead nowhere. It reports false if a name occurs twice,
// because two readers may then see different values.
func valueAt(v rawjson.Value, names []string) (rawjson.Value, bool) {
	for _, name := range names {
		if !v.IsObject() {
			return rawjson.Value{}, true
		}
		next, n := v.Find(name)
		if n == 0 {
			return rawjson.Value{}, true
		}
		if n > 1 {
			return rawjson.Value{}, false
		}
		v = next
	}
	return v, true
}
