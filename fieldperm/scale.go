package fieldperm

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

var replicas = fieldpath.MakePathOrDie("spec", "replicas")

// chargeScale charges the replicas of a Scale that stay. Of an object that may have none, a Scale shows 0, and writes 0. And
// every write of a Scale, of nothing too, changes owners that the webhook is not shown: the API server takes the replicas from the entries of those
// who update, and gives them others, of which the next write of the object keeps one (k8s.io/apimachinery/pkg/util/managedfields, ScaleHandler).
func (d *differ) chargeScale() {
	if d.create || !d.kind.IsScale() {
		return
	}
	isZero := func(v rawjson.Value) bool {
		return v.IsAbsent() || v.Kind() == rawjson.Null || v.Kind() == rawjson.Number && string(v.Raw()) == "0"
	}
	r := d.resolve(replicas)
	switch {
	case !d.same.Equal(r.old, r.new):
		return
	case d.kind.HidesZero() && isZero(r.old):
		d.charge(r.scope, Modified)
	default:
		d.startOwning()
		d.charge(d.resolve(replicas).scope, Ownership)
	}
}
