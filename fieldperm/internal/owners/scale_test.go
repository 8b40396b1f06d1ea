package owners

import (
	"testing"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// D8: only a change of the replicas themselves charges their owners' verbs already.
func TestD8_OnlyAChangeOfTheReplicasExplainsAScale(t *testing.T) {
	spec := fieldpath.Path{}.Field("spec")
	if !isReplicas(spec.Field("replicas")) {
		t.Error(".spec.replicas are not the replicas")
	}
	for _, other := range []fieldpath.Path{
		spec, spec.Field("paused"), spec.Field("a").Field("replicas"), fieldpath.Path{}.Field("status").Field("replicas"),
		fieldpath.Path{}.Field("replicas"), fieldpath.Path{}.Field("metadata").Field("labels").Key("replicas"),
	} {
		if isReplicas(other) {
			t.Errorf("%s are the replicas", other)
		}
	}
}
