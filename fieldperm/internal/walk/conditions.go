package walk

import (
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// conditions caches the results of conditional barriers. Many owners name paths through the same node, so a node is entered many times,
// and its values may be large. Each condition is evaluated once for a pair of values, and each value is decoded once.
type conditions struct {
	holds   map[condition]bool
	decoded map[rawjson.Value]any
	// prunes is whether readers get the new object without some of its fields, nil if it is not known yet.
	prunes *bool
}

// condition is the key of one permission for one change.
type condition struct {
	permission *schema.Permission
	old, new   rawjson.Value
}

// bars reports whether a permission is a barrier for a change from old to new.
func (d *Differ) bars(p *schema.Permission, old, new rawjson.Value) bool {
	if !p.Conditional() {
		return p.MayBar()
	}
	if d.isOwning {
		return true
	}
	at := condition{p, old, new}
	holds, known := d.conditions.holds[at]
	if known || d.Err != nil {
		return holds || !known
	}
	holds = d.prunes() || p.Bars(d.ctx, d.native(old), d.native(new))
	d.look()
	if d.conditions.holds == nil {
		d.conditions.holds = map[condition]bool{}
	}
	d.conditions.holds[at] = holds
	return holds
}

// prunes reports whether readers get the new object without some of its fields, so that no condition on it counts. An object that cannot
// be decoded counts as such.
func (d *Differ) prunes() bool {
	if !d.Kind.MayPrune() {
		return false
	}
	if d.conditions.prunes == nil {
		var object any
		prunes := utiljson.Unmarshal(d.New.Raw(), &object) != nil || d.Kind.Prunes(object)
		d.conditions.prunes = &prunes
	}
	return *d.conditions.prunes
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
