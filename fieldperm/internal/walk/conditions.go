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
	// looked says whether divided is known: whether values where names count in every case may be read otherwise (schema.Kind.Divided).
	looked, divided bool
	// otherwise are the values of the new object that readers get otherwise, or with parts that they get otherwise.
	otherwise map[rawjson.Value]bool
}

// bars reports whether a permission of a node is a barrier for a change of the node from old to new.
func (d *Differ) bars(n *schema.Node, p *schema.Permission, old, new rawjson.Value) bool {
	if !p.Conditional() {
		return p.MayBar()
	}
	if d.isOwning || d.Err != nil {
		return true
	}
	holds := d.readOtherwise(new) || n.Misread(p, d.native(old)) || n.Misread(p, d.native(new)) || n.MayBeDivided(p) && d.isDivided() || p.Bars(d.ctx, d.native(old), d.native(new))
	d.look()
	return holds
}

// readOtherwise reports whether readers may get a value of the new object in another form, so that a condition on it does not count.
func (d *Differ) readOtherwise(v rawjson.Value) bool {
	if d.Kind.ShownAsRead() {
		return false
	}
	c := &d.conditions
	if !c.read {
		c.read, c.otherwise = true, map[rawjson.Value]bool{}
		shown := d.native(d.New)
		read, is := runtime.DeepCopyJSONValue(shown).(map[string]any)
		c.nothing = !is || !d.Kind.Read(read)
		if !c.nothing {
			c.compare(d.New, shown, read)
		}
	}
	return c.nothing || c.otherwise[v]
}

// isDivided reports whether a condition on one value of the old or of the new object may not see what programs read.
func (d *Differ) isDivided() bool {
	c := &d.conditions
	if !c.looked {
		c.looked, c.divided = true, d.Kind.Divided(d.native(d.Old)) || d.Kind.Divided(d.native(d.New))
	}
	return c.divided
}

// compare notes the values, from v down, whose decoded form is not the one that readers get. It reports whether v is one. A field that is null
// is one that is absent.
func (c *conditions) compare(v rawjson.Value, shown, read any) bool {
	var differs bool
	switch shown := shown.(type) {
	case map[string]any:
		fields, is := read.(map[string]any)
		differs = !is
		for m := v.Members(); m.Next(); {
			name := m.Name().String()
			differs = c.compare(m.Value(), shown[name], fields[name]) || differs
		}
		for name := range fields {
			_, is := shown[name]
			differs = differs || !is
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
			differs = c.compare(each.Value(), shown[i], item) || differs
		}
	default:
		differs = shown != read
	}
	if differs {
		c.otherwise[v] = true
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
