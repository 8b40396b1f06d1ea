package uncovered

import (
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/compile"
)

// Plurals returns the resources that the sources name, for Config.
func Plurals(topologies []compile.Topology) map[runtimeschema.GroupKind]string {
	out := map[runtimeschema.GroupKind]string{}
	for i := range topologies {
		for gvk, plural := range topologies[i].Plurals {
			out[gvk.GroupKind()] = plural
		}
	}
	return out
}
