package load

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
)

// fieldNames are few, so that the fields of drawn objects are often in the drawn schema.
var fieldNames = []string{"a", "b", "metadata", "kind"}

// TestC2_OutlineReadsAsTheSchema: an outline changes no object otherwise than the schema that it was made from, for drawn schemas and
// objects. These also draw schemas that no API server accepts.
func TestC2_OutlineReadsAsTheSchema(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The same pairs each time.
	coerced, pruned := 0, 0
	for range 2_000 {
		s := drawSchema(random, 4)
		object, _ := drawValue(random, 5).(map[string]any)
		if object == nil {
			continue
		}
		read := func(s *structuralschema.Structural, prunes bool) (map[string]any, string) {
			out := runtime.DeepCopyJSON(object)
			said := ""
			if prunes {
				said = fmt.Sprint(pruning.PruneWithOptions(out, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}))
			}
			return out, said + fmt.Sprint(objectmeta.Coerce(nil, out, s, true, true))
		}
		for _, prunes := range []bool{false, true} {
			want, wantSaid := read(s, prunes)
			got, said := read(readingOutline(s, prunes), prunes)
			if !reflect.DeepEqual(got, want) || said != wantSaid {
				t.Fatalf("schema %+v, object %v: read as %v (%s), want %v (%s)", s, object, got, said, want, wantSaid)
			}
			if !reflect.DeepEqual(want, object) {
				if prunes {
					pruned++
				} else if reflect.DeepEqual(want["metadata"], object["metadata"]) {
					coerced++ // In an embedded resource.
				}
			}
		}
	}
	if coerced < 50 || pruned < 50 {
		t.Errorf("only %d objects had an embedded resource that was read otherwise, and %d were pruned", coerced, pruned)
	}
}

func drawSchema(random *rand.Rand, depth int) *structuralschema.Structural {
	out := &structuralschema.Structural{Generic: structuralschema.Generic{Type: "object", Description: "long"}}
	out.XEmbeddedResource, out.XPreserveUnknownFields = random.IntN(4) == 0, random.IntN(4) == 0
	if depth == 0 {
		return out
	}
	if random.IntN(2) == 0 {
		out.Items = drawSchema(random, depth-1)
	}
	if random.IntN(3) == 0 {
		out.AdditionalProperties = &structuralschema.StructuralOrBool{Bool: true}
		if random.IntN(2) == 0 {
			out.AdditionalProperties.Structural = drawSchema(random, depth-1)
		}
	}
	if random.IntN(3) > 0 {
		out.Properties = map[string]structuralschema.Structural{}
		for range 2 {
			out.Properties[fieldNames[random.IntN(len(fieldNames))]] = *drawSchema(random, depth-1)
		}
	}
	return out
}

func drawValue(random *rand.Rand, depth int) any {
	switch kind := random.IntN(6); {
	case depth == 0 || kind == 0:
		return []any{nil, "text", int64(1)}[random.IntN(3)]
	case kind == 1:
		return []any{drawValue(random, depth-1), drawValue(random, depth-1)}
	}
	out := map[string]any{}
	for _, name := range fieldNames {
		if random.IntN(4) > 0 {
			out[name] = drawValue(random, depth-1)
		}
	}
	if random.IntN(2) == 0 {
		out["metadata"] = map[string]any{"name": "x", "labels": nil, "more": "unknown"}
	}
	return out
}
