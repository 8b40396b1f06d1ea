package fieldperm

import (
	"slices"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// writtenByServer reports whether the API server itself makes the change from old to new, because another field changes in
// this request (D13). That one is charged, so that what hangs on it need not be. Behind a barrier only what every silent client
// gets is free.
func (d *differ) writtenByServer(w *schema.Written, barred bool, old, new rawjson.Value) bool {
	cases := w.Cases()
	for i := range cases {
		if (!barred || cases[i].Constant()) && d.written(&cases[i], old, new) {
			return true
		}
	}
	return false
}

// unasked reports whether a new object has in a node what the API server gives to a client that says nothing of the node: the
// declared default (C5) or a constant (D13).
func (d *differ) unasked(s scope, old, new rawjson.Value) bool {
	if !d.create {
		return false
	}
	w := s.node.Written()
	return isDefault(s.node.Default(), new) || w != nil && d.writtenByServer(w, true, old, new)
}

// fillsIn reports whether a value is what the API server gives to any new object that does not have it, whatever else the object has. A
// declared default is none: it comes with the struct that it is in.
func (d *differ) fillsIn(s scope, v rawjson.Value) bool {
	w := s.node.Written()
	return w != nil && slices.ContainsFunc(w.Cases(), func(c schema.WrittenCase) bool {
		return c.Constant() && len(c.Cause()) == 0 && c.ByServer(nil, d.native(v), nil, nil)
	})
}

func (d *differ) written(c *schema.WrittenCase, old, new rawjson.Value) bool {
	if c.OnCreate() != d.create {
		return false
	}
	original, found := valueAt(d.new, c.Original())
	if len(c.Cause()) == 0 {
		// The object itself: all that is told of it is that it is new.
		return found && c.OnCreate() && c.ByServer(d.native(old), d.native(new), nil, d.native(original))
	}
	was, before := valueAt(d.old, c.Cause())
	is, after := valueAt(d.new, c.Cause())
	if !found || !before || !after || d.same.Equal(was, is) {
		return false
	}
	return c.ByServer(d.native(old), d.native(new), d.native(is), d.native(original))
}

// valueAt follows names from an object's root; absent if they lead nowhere. It reports false if a name occurs twice:
// of two readers each may have another value then.
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
