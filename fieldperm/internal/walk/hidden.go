package walk

import (
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/verbs"
)

// chargeHidden charges what a write through a version may change without showing it. For a lossy version it charges the root and each
// barrier that the write may pass, even if nothing changed. In a lossless version the field of a barrier may have another name, so each
// change that may be a change of that field is charged with the barrier. A creation is charged as well, because it may set a field that
// another version guards.
func (d *Differ) chargeHidden() {
	kind := d.Kind
	switch {
	case kind.Lossy():
		d.Charge(d.Root, change.Modified)
	case !slices.ContainsFunc(d.Out, func(r change.Requirement) bool { return kind.MayHide(r.Path.Top()) }):
		return
	}
	uncovered := d.Uncovered
	if d.InStatus != nil && slices.ContainsFunc(d.Out, func(r change.Requirement) bool {
		return r.Operation == change.Ownership && (r.Path.IsRoot() || r.Path.Top() == "status")
	}) {
		uncovered = d.InStatus
	}
	for _, v := range kind.HiddenBarriers(uncovered) {
		d.Out = append(d.Out, change.Requirement{Operation: change.Modified, Chain: []verbs.Verb{v}, Barrier: 0})
	}
	for i := range d.Out {
		if d.Out[i].Path.IsRoot() {
			d.Out[i].Instead = kind.Instead()
		}
	}
}
