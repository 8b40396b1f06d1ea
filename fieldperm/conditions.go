package fieldperm

import (
	"fmt"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// conditions caches the results of conditional barriers. Many owners name paths through the same node, so a node is entered many times,
// and its values may be large. Each condition is evaluated once for a pair of values, and each value is decoded once.
type conditions struct {
	holds   map[condition]bool
	decoded map[rawjson.Value]any
}

// condition is the key of one permission for one change.
type condition struct {
	permission *schema.Permission
	old, new   rawjson.Value
}

// bars reports whether a permission is a barrier for a change from old to new.
func (d *differ) bars(p *schema.Permission, old, new rawjson.Value) bool {
	if !p.Conditional() {
		return p.MayBar()
	}
	if d.owning {
		return true
	}
	at := condition{p, old, new}
	holds, known := d.conditions.holds[at]
	if known || d.err != nil {
		return holds || !known
	}
	holds = p.Bars(d.ctx, d.native(old), d.native(new))
	d.look()
	if d.conditions.holds == nil {
		d.conditions.holds = map[condition]bool{}
	}
	d.conditions.holds[at] = holds
	return holds
}

// native returns a value as CEL takes it. It caches the value and its parts, because conditions may exist at every level.
func (d *differ) native(v rawjson.Value) any {
	if d.conditions.decoded == nil {
		d.conditions.decoded = map[rawjson.Value]any{}
	}
	return native(v, d.conditions.decoded)
}

// lookEvery is the number of nodes between two checks of the context. A node costs some microseconds.
const lookEvery = 4096

// stops reports whether the run is over. Once in lookEvery calls it checks the context.
func (d *differ) stops() bool {
	if d.looks++; d.looks%lookEvery == 0 {
		d.look()
	}
	return d.err != nil
}

// look ends the run if the context has ended.
func (d *differ) look() {
	if d.err == nil {
		if err := d.ctx.Err(); err != nil {
			d.err = stopped(err)
		}
	}
}

// stopped returns the error of a comparison that was interrupted. It is not a decision.
func stopped(err error) error {
	return fmt.Errorf("comparison of the objects: %w before its end: try again, or with a smaller object", err)
}
