package fieldperm

import (
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// writtenByServer reports whether the API server itself makes the change from old to new, because another field changes in
// this request (D13). That one is charged, so that what hangs on it need not be.
func (d *differ) writtenByServer(w *schema.Written, old, new rawjson.Value) bool {
	oldCause, cause := valueAt(d.old, w.Cause()), valueAt(d.new, w.Cause())
	if d.same.Equal(oldCause, cause) {
		return false
	}
	if len(w.Cause()) == 0 {
		// The object itself: all that is told of it is that it is new.
		return d.create && w.ByServer(d.ctx, d.native(old), d.native(new), nil, nil)
	}
	return w.ByServer(d.ctx, d.native(old), d.native(new), d.native(oldCause), d.native(cause))
}

// valueAt follows names from an object's root; absent if they lead nowhere, or not to one place.
func valueAt(v rawjson.Value, names []string) rawjson.Value {
	for _, name := range names {
		if !v.IsObject() {
			return rawjson.Value{}
		}
		next, n := v.Find(name)
		if n != 1 {
			return rawjson.Value{}
		}
		v = next
	}
	return v
}
