package walk

import (
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// chargeHidden charges what a write through a version may change without showing it. For a lossy version it charges the root and each
// barrier that the write may pass, even if nothing changed. In a lossless version the field of a barrier may have another name, so each
// change that may be a change of that field is charged with the barrier. So is a new object of which no field is charged.
func (d *Differ) chargeHidden() {
	kind := d.Kind
	switch {
	case kind.Lossy():
		d.Charge(d.Root, change.Modified)
	case !kind.Hides() || !(d.Create && len(d.Out) == 0) && !slices.ContainsFunc(d.Out, func(r change.Requirement) bool { return kind.MayHide(r.Path.Top()) }):
		return
	}
	for _, v := range kind.HiddenBarriers(d.uncoveredInAll()) {
		d.Out = append(d.Out, change.Requirement{Operation: change.Modified, Chain: []verbs.Verb{v}, Barrier: 0})
	}
	if inStatus := d.all.ForStatusValues(); kind.Lossy() && inStatus.Has(verbs.All()) && !d.Uncovered.Has(verbs.All()) {
		// Of a barrier at the root that holds in the status, the root above knows nothing.
		d.Out = append(d.Out, change.Requirement{Operation: change.Modified, Chain: d.Root.chain[:1:1], Barrier: 0})
	}
	for i := range d.Out {
		if d.Out[i].Path.IsRoot() {
			d.Out[i].Instead = kind.Instead()
		}
	}
}

// uncoveredInAll returns the barriers of sets that hold for hidden fields: those in the status only if a charged change may be in the
// status. A value that another version may call otherwise may be in the status there.
func (d *Differ) uncoveredInAll() schema.VerbSet {
	if d.InStatus == nil {
		return d.Uncovered
	}
	out := d.Uncovered
	for i := range d.Out {
		r := &d.Out[i]
		switch top := r.Path.Top(); {
		case r.Operation == change.Ownership && (top == "" || top == "status"):
			return d.InStatus
		case r.Operation != change.Ownership && d.Kind.MayHide(top):
			out = d.Uncovered.With(d.all.ForStatusValues())
		}
	}
	return out
}
