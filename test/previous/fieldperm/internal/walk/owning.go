package walk

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// owning is the state of the walk for the comparison of owners.
type owning struct {
	// Owned is set when the walk meets a change of managedFields. Until then its scope has no node.
	Owned Owned
	// isOwning is true while owners are compared. The value then changes in a later request, the next apply of its owner. So a
	// conditional barrier holds always.
	isOwning bool
	// leaves are the paths of the first scalars that appeared or changed.
	leaves    [mostLeaves]fieldpath.Path
	leafCount int
}

// Owned is a change of metadata.managedFields.
type Owned struct {
	Scope    Scope
	Old, New rawjson.Value
}

// StartOwning puts into force the barriers that hold for changes of owners.
func (d *Differ) StartOwning() {
	d.isOwning = true
	if len(d.Uncovered) != len(d.all) {
		d.Uncovered, d.InStatus = d.all.ForOwners(), d.all
	}
	d.restart()
	d.Owned.Scope = d.Resolve(smdpath.MakePathOrDie("metadata", "managedFields")).Scope
}

// StopOwning ends the state that StartOwning began. It is called when no manager gained anything by which a later apply could change a value.
func (d *Differ) StopOwning() {
	d.isOwning = false
	if d.InStatus != nil {
		d.startValues()
		d.restart()
	}
}

// startValues puts into force the barriers that hold for changes of values.
func (d *Differ) startValues() {
	d.Uncovered, d.InStatus = d.all.ForValues(), nil
	if inStatus := d.all.ForStatusValues(); len(inStatus) != len(d.Uncovered) {
		d.InStatus = inStatus
	}
}

// restart enters the objects again with other barriers in force. Paths lead to the same places, but the barriers on them differ.
func (d *Differ) restart() {
	d.Root = d.enterRoot(d.Kind, d.Old, d.New)
	d.trail = trail{points: d.trail.points[:0]}
}

// mostLeaves is how many changed scalars are remembered. In most requests the requester owns the first of them.
const mostLeaves = 4

// remember stores the path of a scalar that appeared or changed.
func (d *Differ) remember(p fieldpath.Path, old, new rawjson.Value) {
	if d.leafCount < mostLeaves && new.IsScalar() && (old.IsScalar() || old.IsAbsent()) {
		d.leaves[d.leafCount] = p
		d.leafCount++
	}
}

// Leaves returns the paths of the first scalars that appeared or changed.
func (d *Differ) Leaves() []fieldpath.Path { return d.leaves[:d.leafCount] }
