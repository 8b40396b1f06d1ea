//go:build integration

package fields

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/seeds.yaml
var seedsYAML []byte

// seedDocument is a document of seeds.yaml: an object with more fields than the sample of its kind.
type seedDocument struct {
	Group  string         `json:"group"`
	Kind   string         `json:"kind"`
	Object map[string]any `json:"object"`
	// Pods are the places for the seed "pod", "" for none.
	Pods []string `json:"pods"`
	// Variants are further objects of the kind, for which the API server writes other fields.
	Variants []variant `json:"variants"`
}

// variant is merged into the object of its kind.
type variant struct {
	Name   string         `json:"name"`
	Object map[string]any `json:"object"`
	// Then is merged into the stored object in a second write, Status in a write through the subresource.
	Then   map[string]any `json:"then"`
	Status map[string]any `json:"status"`
	// Fields are the fields to test in it, all if there are none.
	Fields []string `json:"fields"`
}

func (v *variant) concerns(p path) bool {
	return v == nil || len(v.Fields) == 0 || slices.ContainsFunc(v.Fields, func(field string) bool { return strings.HasPrefix(p.String(), field) })
}

var loadSeeds = sync.OnceValues(func() (map[runtimeschema.GroupKind]seedDocument, error) {
	out := map[runtimeschema.GroupKind]seedDocument{}
	for i, document := range bytes.Split(seedsYAML, []byte("\n---\n")) {
		var s seedDocument
		if err := yaml.UnmarshalStrict(document, &s); err != nil {
			return nil, fmt.Errorf("seeds.yaml: document %d: %w", i, err)
		}
		out[runtimeschema.GroupKind{Group: s.Group, Kind: s.Kind}] = s
	}
	return out, nil
})

// seeded merges the seed of a kind into its sample, key by key.
func seeded(kind runtimeschema.GroupKind, object map[string]any) (map[string]any, error) {
	seeds, err := loadSeeds()
	if err != nil {
		return nil, err
	}
	s, ok := seeds[kind]
	if !ok {
		return object, nil
	}
	if len(s.Pods) > 0 {
		pod := seeds[runtimeschema.GroupKind{Kind: "(pod)"}].Object
		place := make([]any, len(s.Pods))
		for i := range s.Pods {
			place[i] = s.Pods[i]
		}
		if at, ok := get(object, place); ok {
			lay(at.(map[string]any), runtime.DeepCopyJSON(normal(pod).(map[string]any)))
		}
	}
	lay(object, normal(s.Object))
	return object, nil
}

// develop writes the additional fields of a variant to a stored object.
func (r *run) develop(ctx context.Context, e *endpoint, name string, v *variant) error {
	for _, step := range []struct {
		more  map[string]any
		names []string
	}{{v.Then, []string{name}}, {v.Status, []string{name, "status"}}} {
		if step.more == nil {
			continue
		}
		now, err := r.server.write(ctx, http.MethodGet, e.path(step.names...), nil, nil)
		if err != nil {
			return err
		}
		lay(now.object, normal(step.more))
		a, err := r.server.write(ctx, http.MethodPut, e.path(step.names...)+"?fieldManager=fields", now.object, nil)
		if err != nil {
			return err
		}
		if !a.ok() {
			return fmt.Errorf("variant %s: %s", v.Name, a.says())
		}
	}
	return nil
}

func lay(at map[string]any, more any) {
	object, ok := more.(map[string]any)
	if !ok {
		return
	}
	for key, value := range object {
		if below, ok := at[key].(map[string]any); ok {
			if _, deeper := value.(map[string]any); deeper {
				lay(below, value)
				continue
			}
		}
		if value == nil {
			delete(at, key)
			continue
		}
		at[key] = runtime.DeepCopyJSONValue(value)
	}
}
