package owners

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
)

var replicas = smdpath.MakePathOrDie("spec", "replicas")

// chargeScale charges the owners of replicas when a write of the Scale does not change them. Every write of a Scale, also one without a
// change, changes owners that the webhook does not see: the API server takes the replicas from the entries of the Update managers and
// gives them to other entries, of which the next write of the object keeps one (k8s.io/apimachinery/pkg/util/managedfields,
// ScaleHandler). For an object without replicas it writes 0, which the Scale showed before. The verbs of the owners are those of the
// value, and every barrier holds.
func chargeScale(d *charge.Charger) {
	if d.Create || !d.Kind.IsScale() {
		return
	}
	if d.Same.Equal(d.Old.Get("spec").Get("replicas"), d.New.Get("spec").Get("replicas")) {
		d.StartOwning()
		d.Charge(d.Resolve(replicas).Place, change.Ownership)
	}
}
