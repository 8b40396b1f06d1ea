package owners

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
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
	// Most writes of a Scale change the replicas, and their value is charged already. The comparison often knows without a search.
	if slices.ContainsFunc(d.Leaves(), isReplicas) || !d.Same.Equal(replicasOf(d.Old), replicasOf(d.New)) {
		return
	}
	d.StartOwning()
	d.Charge(d.Resolve(replicas).Place, change.Ownership)
}

func isReplicas(p fieldpath.Path) bool {
	above, last := p.Cut()
	return above.IsTop("spec") && last.Name == "replicas"
}

func replicasOf(scale rawjson.Value) rawjson.Value { return scale.Get("spec").Get("replicas") }
