package walk

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// conditions are the values that conditional barriers read. Each value is decoded once, because values may be large and conditions may exist
// at every level.
type conditions struct {
	decoded map[rawjson.Value]any
	// read says whether the two below are known.
	read bool
	// nothing means that readers get the new object without some of its fields, or that it cannot be decoded.
	nothing bool
	// otherwise are the values of the new object that readers get in another form, each with that form.
	otherwise map[rawjson.Value]any
}

// bars reports whether a permission of a node is a barrier for a change of the node from old to new.
func (d *Differ) bars(n *schema.Node, p *schema.Permission, old, new rawjson.Value) bool {
	if !p.Conditional() {
		return p.MayBar()
	}
	if d.isOwning || d.Err != nil {
		return true
	}
	holds := d.barsAsRead(p, old, new) || n.Misread(p, d.native(old)) || n.Misread(p, d.native(new)) || p.Bars(d.ctx, d.native(old), d.native(new))
	d.look()
	return holds
}

// barsAsRead reports whether a condition is true of the new value in the form in which readers get it, if that is another form. A condition on an
// object that readers get without some of its fields counts as true.
func (d *Differ) barsAsRead(p *schema.Permission, old, new rawjson.Value) bool {
	if d.Kind.ShownAsRead() {
		return false
	}
	c := &d.conditions
	if !c.read {
		c.read, c.otherwise = true, map[rawjson.Value]any{}
		shown := d.native(d.New)
		read, is := runtime.DeepCopyJSONValue(shown).(map[string]any)
		c.nothing = !is || !d.Kind.Read(read)
		if !c.nothing {
			d.compareRead(d.New, shown, read)
		}
	}
	read, isOtherwise := c.otherwise[new]
	return c.nothing || isOtherwise && p.Bars(d.ctx, d.native(old), read)
}

// compareRead notes the values, from v down, that readers get in another form than shown, the decoded v, and reports whether v is one. A name that
// occurs twice makes the object one that cannot be read: a value of it may be another one than the decoded one.
func (d *Differ) compareRead(v rawjson.Value, shown, read any) bool {
	var differs bool
	switch shown := shown.(type) {
	case map[string]any:
		if count(v) > len(shown) {
			d.conditions.nothing = true
			return true
		}
		fields, is := read.(map[string]any)
		differs = !is || len(fields) > len(shown)
		for m := v.Members(); m.Next(); {
			name := m.Name().String()
			below, is := fields[name]
			// A field that is null is not absent: a condition may ask has(self.labels).
			differs = d.compareRead(m.Value(), shown[name], below) || !is || differs
		}
	case []any:
		items, is := read.([]any)
		differs = !is || len(items) != len(shown)
		i := 0
		for each := v.Items(); each.Next(); i++ {
			var item any
			if i < len(items) {
				item = items[i]
			}
			differs = d.compareRead(each.Value(), shown[i], item) || differs
		}
	default:
		differs = shown != read
	}
	if differs {
		d.conditions.otherwise[v] = read
	}
	return differs
}

// native returns a value as CEL takes it. It caches the value and its parts, because conditions may exist at every level.
func (d *Differ) native(v rawjson.Value) any {
	if d.conditions.decoded == nil {
		d.conditions.decoded = map[rawjson.Value]any{}
	}
	return rawjson.Native(v, d.conditions.decoded)
}

// LookEvery is the number of nodes between two checks of the context. A node costs some microseconds.
const LookEvery = 4096

// Stops reports whether the run is over. Once in LookEvery calls it checks the context.
func (d *Differ) Stops() bool {
	if d.looks++; d.looks%LookEvery == 0 {
		d.look()
	}
	return d.Err != nil
}

// look ends the run if the context has ended.
func (d *Differ) look() {
	if d.Err == nil {
		if err := d.ctx.Err(); err != nil {
			d.Err = change.Stopped(err)
		}
	}
}
