package walk

import (
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/verbs"
)

// chargeHidden charges what a write through a version may change without showing it. For a lossy version it charges the root and each
// barrier of the kind, even if nothing changed. In another version every change is charged with the barriers that the version cannot place. A
// creation is charged as well, because it may set a field that another version guards.
func (d *Differ) chargeHidden() {
	kind := d.Kind
	switch {
	case kind.Lossy():
		d.Charge(d.Root, change.Modified)
	case len(d.Out) == 0 && !d.Create:
		return
	}
	uncovered := d.all.ForStatusValues()
	if slices.ContainsFunc(d.Out, func(r change.Requirement) bool { return r.Operation == change.Ownership }) {
		uncovered = d.all
	}
	for _, v := range kind.HiddenBarriers(uncovered) {
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
