package walk

import (
	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// bars reports whether a permission is a barrier for a change of its node from old to new.
func (d *Differ) bars(p *schema.Permission, old, new rawjson.Value) bool {
	if !p.Conditional() {
		return p.MayBar()
	}
	// Programs read a null as absent, or as the zero of its type.
	if d.isOwning || d.Err != nil || new.Kind() == rawjson.Null {
		return true
	}
	holds := p.Bars(d.ctx, rawjson.Native(old, nil), rawjson.Native(new, nil))
	d.look()
	return holds
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
