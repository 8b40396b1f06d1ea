package sampleobject

import (
	_ "embed" // The import embeds kinds.yaml.
	"errors"
	"fmt"
	"sync"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/internal/manifest"
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
	documents, err := manifest.Documents(content)
	if err != nil {
		return nil, err
	}
	for i, document := range documents {
		entry, err := decodeKind(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		key := runtimeschema.GroupKind{Group: entry.Group, Kind: entry.Kind}
		if _, twice := known[key]; twice {
			return nil, fmt.Errorf("document %d: kind %q is there twice: delete one", i+1, key)
		}
		known[key] = entry
	}
	return known, nil
}

func decodeKind(document []byte) (kind, error) {
	var entry kind
	faults, err := kjson.UnmarshalStrict(document, &entry)
	if err := errors.Join(append(faults, err)...); err != nil {
		return kind{}, err
	}
	if entry.Kind == "" || (entry.Object == nil) == (entry.Impossible == "") {
		return kind{}, fmt.Errorf("kind %q: set kind and one of object and impossible", entry.Kind)
	}
	return entry, nil
}
