package oracle

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fieldperm/fieldperm/test/sampleobject"
)

//go:embed objects.yaml
var objectsYAML []byte

// dress has the fields of a kind that are not in the minimal sample of the kind.
type dress struct {
	Group, Kind string
	// Object replaces the sample.
	Object map[string]any
	// Status is written through the subresource status.
	Status map[string]any
	// Changes are merge patches that the API server accepts in most cases.
	Changes []map[string]any
}

// dresses reads objects.yaml.
func dresses() (map[runtimeschema.GroupKind]*dress, error) {
	out := map[runtimeschema.GroupKind]*dress{}
	decoder := kyaml.NewYAMLOrJSONDecoder(bytes.NewReader(objectsYAML), 1<<20)
	for {
		var d dress
		if err := decoder.Decode(&d); err != nil {
			if err.Error() == "EOF" {
				return out, nil
			}
			return nil, fmt.Errorf("objects.yaml: %w", err)
		}
		if d.Kind == "" {
			continue
		}
		kind := runtimeschema.GroupKind{Group: d.Group, Kind: d.Kind}
		if out[kind] != nil {
			return nil, fmt.Errorf("objects.yaml: kind %q stands twice: keep one", kind)
		}
		// Use the same number types as the decoder of the API server.
		raw, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		all, err := parseObject(raw)
		if err != nil {
			return nil, err
		}
		d.Object, _ = all["Object"].(map[string]any)
		d.Status, _ = all["Status"].(map[string]any)
		d.Changes = nil
		list, _ := all["Changes"].([]any)
		for _, one := range list {
			patch, ok := one.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("objects.yaml: %q: a change is no merge patch", kind)
			}
			d.Changes = append(d.Changes, patch)
		}
		out[kind] = &d
	}
}

// object makes a valid object of an endpoint's kind.
func (w *world) object(d *draw, e *Endpoint, namespace, name string) (map[string]any, error) {
	if c := w.customs[e.Place.Main()]; c != nil {
		return c.draw(d, e.Version, namespace, name)
	}
	dressed := w.dresses[e.Kind.GroupKind()]
	var out map[string]any
	if dressed != nil && dressed.Object != nil {
		out = runtime.DeepCopyJSON(dressed.Object)
		out["apiVersion"], out["kind"] = e.Kind.GroupVersion().String(), e.Kind.Kind
	} else {
		var err error
		if out, err = sampleobject.New(e.Kind, nil); err != nil {
			return nil, err
		}
	}
	sampleobject.Place(out, name, namespace)
	metadata(out)["name"] = name
	rename(out, e, name)
	if spec, ok := out["spec"].(map[string]any); ok && e.Kind.Kind == "Pod" && !d.oneIn(4) {
		delete(spec, "schedulingGates") // The API server refuses a Binding of a Pod with scheduling gates.
	}
	return out, nil
}

// rename changes the fields that have to agree with the name.
func rename(object map[string]any, e *Endpoint, name string) {
	spec, _ := object["spec"].(map[string]any)
	m := metadata(object)
	switch e.Kind.Kind {
	case "CustomResourceDefinition":
		// Each definition has a group of its own, so that no definition waits for the names of another one.
		m["name"], spec["group"] = name+"."+name+".defined.test", name+".defined.test"
		spec["names"] = map[string]any{"plural": name, "singular": name, "kind": "Defined", "listKind": "DefinedList"}
	case "APIService":
		// The API server does not wait for an aggregated server that does not exist: no server serves the group.
		m["name"], spec["version"], spec["group"] = name+".aggregated.test", name, "aggregated.test"
	case "IPAddress":
		m["name"] = addressOf(name)
	case "StorageVersion":
		m["name"] = name + ".oracle.test"
	}
}

// addressOf gives each name an address of its own, in the network of the shard.
func addressOf(name string) string {
	var shard, n int
	if _, err := fmt.Sscanf(name, "s%d-%d", &shard, &n); err != nil {
		return name
	}
	return fmt.Sprintf("10.77.%d.%d", shard, n%254+1)
}

// changesOf returns the changes that are for one kind only.
func (w *world) changesOf(kind runtimeschema.GroupKind, status bool) []change {
	d := w.dresses[kind]
	if d == nil {
		return nil
	}
	var out []change
	for _, patch := range d.Changes {
		out = append(out, merging(patch))
	}
	if status && d.Status != nil {
		out = append(out, merging(map[string]any{"status": d.Status}))
	}
	return out
}

func merging(patch map[string]any) change {
	return func(_ *draw, object map[string]any) string {
		merge(object, patch)
		return fmt.Sprintf("merge %v", patch)
	}
}

// merge applies a merge patch in place.
func merge(object, patch map[string]any) {
	for key, value := range patch {
		inner, deeper := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case deeper:
			merge(child(object, key), inner)
		default:
			object[key] = runtime.DeepCopyJSONValue(value)
		}
	}
}
