package fieldperm

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

var replicas = fieldpath.MakePathOrDie("spec", "replicas")

// chargeScale charges the owners of replicas that a Scale leaves as they are. Every write of a Scale, of nothing too, changes owners that the webhook
// is not shown: the API server takes the replicas from the entries of those who update, and gives them others, of which the next
// write of the object keeps one (k8s.io/apimachinery/pkg/util/managedfields, ScaleHandler). Of an object that has no replicas it makes one
// that has 0, which the Scale showed before: the verbs of the owners are those of the value, and every barrier holds.
func (d *differ) chargeScale() {
	if d.create || !d.kind.IsScale() {
		return
	}
	// Most Scales change the replicas, and need no way to them.
	if !d.same.Equal(replicasOf(d.old), replicasOf(d.new)) {
		return
	}
	d.startOwning()
	d.charge(d.resolve(replicas).scope, Ownership)
}

func replicasOf(scale rawjson.Value) rawjson.Value { return scale.Get("spec").Get("replicas") }
