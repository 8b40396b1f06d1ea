//go:build integration

package endpoints

import (
	"bufio"
	"bytes"
	_ "embed" // For objects.yaml.
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed objects.yaml
var objectsYAML []byte

// objects are the bodies of objects.yaml.
type objects map[runtimeschema.GroupKind]map[string]any

func readObjects() (objects, error) {
	out := objects{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(objectsYAML)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var entry struct {
			Group  string         `json:"group"`
			Kind   string         `json:"kind"`
			Object map[string]any `json:"object"`
		}
		if err := yaml.UnmarshalStrict(document, &entry); err != nil {
			return nil, err
		}
		key := runtimeschema.GroupKind{Group: entry.Group, Kind: entry.Kind}
		if out[key] != nil || entry.Object == nil {
			return nil, fmt.Errorf("objects.yaml: kind %q is there twice, or has no object", key)
		}
		out[key] = entry.Object
	}
}

// object returns a body of a kind that the caller owns, nil if objects.yaml has none.
func (o objects) object(gvk runtimeschema.GroupVersionKind, namespace, name string) map[string]any {
	known := o[gvk.GroupKind()]
	if known == nil {
		return nil
	}
	out := runtime.DeepCopyJSON(integers(known).(map[string]any))
	out["apiVersion"], out["kind"] = gvk.GroupVersion().String(), gvk.Kind
	metadata, _ := out["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		out["metadata"] = metadata
	}
	if metadata["name"] == nil {
		metadata["name"] = name
	}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return replace(out, strings.NewReplacer("{namespace}", namespace, "{name}", name)).(map[string]any)
}

// integers converts YAML numbers without a fraction to int64, as the JSON decoder of objects does.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			out[k] = integers(inner)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			out = append(out, integers(inner))
		}
		return out
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func replace(v any, with *strings.Replacer) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			v[k] = replace(inner, with)
		}
	case []any:
		for i, inner := range v {
			v[i] = replace(inner, with)
		}
	case string:
		return with.Replace(v)
	}
	return v
}
