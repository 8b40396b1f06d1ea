package sampleobject

import (
	"bufio"
	"bytes"
	_ "embed" // For kinds.yaml.
	"errors"
	"fmt"
	"io"
	"sync"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

//go:embed kinds.yaml
var kindsYAML []byte

// kind is a document of kinds.yaml.
type kind struct {
	Group      string         `json:"group"`
	Kind       string         `json:"kind"`
	Object     map[string]any `json:"object"`
	Impossible string         `json:"impossible"`
}

// loadKinds decodes kinds.yaml once. The result is shared and must not be changed.
var loadKinds = sync.OnceValues(func() (map[runtimeschema.GroupKind]kind, error) {
	known, err := decodeKinds(kindsYAML)
	if err != nil {
		return nil, fmt.Errorf("kinds.yaml: %w", err)
	}
	return known, nil
})

func decodeKinds(content []byte) (map[runtimeschema.GroupKind]kind, error) {
	known := map[runtimeschema.GroupKind]kind{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return known, nil
		}
		if err != nil {
			return nil, err
		}
		entry, err := decodeKind(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		key := runtimeschema.GroupKind{Group: entry.Group, Kind: entry.Kind}
		if _, twice := known[key]; twice {
			return nil, fmt.Errorf("document %d: kind %q is there twice: delete one", number, key)
		}
		known[key] = entry
	}
}

func decodeKind(document []byte) (kind, error) {
	var entry kind
	encoded, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return kind{}, err
	}
	faults, err := kjson.UnmarshalStrict(encoded, &entry)
	if err := errors.Join(append(faults, err)...); err != nil {
		return kind{}, err
	}
	if entry.Kind == "" || (entry.Object == nil) == (entry.Impossible == "") {
		return kind{}, fmt.Errorf("kind %q: set kind and one of object and impossible", entry.Kind)
	}
	return entry, nil
}
