package endpoint

import (
	_ "embed" // The import embeds derived.yaml.
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed derived.yaml
var derivedYAML []byte

// DerivedObservation is the content of derived.yaml: the observed fields of new Pods that the API server writes because of another field.
type DerivedObservation struct {
	// APIServer is the version of the API server.
	APIServer string    `json:"apiServer"`
	Derived   []Derived `json:"derived"`
}

// Derived is a field of Pods whose value in a new Pod depends on another field of the request. Both are paths in the form of permission
// schemas. A key of annotations that ends in a slash stands for all keys that begin with it.
type Derived struct {
	Field string `json:"field"`
	From  string `json:"from"`
	// Same means that both fields have the same value.
	Same bool `json:"same,omitempty"`
	// Shown means that the API server writes the field in a template of a built-in kind too.
	Shown bool `json:"shown,omitempty"`
	// Item means that the item of the innermost list that the field is in may be new, and so may be that list.
	Item bool `json:"item,omitempty"`
	// With is another field of the specification that the field is derived from: only a Pod that has it gets the field.
	With string `json:"with,omitempty"`
}

// DerivedOfPods returns the fields of Pods that the API server derives from other fields of a new Pod. Callers must not change the result.
var DerivedOfPods = sync.OnceValue(func() []Derived {
	var out DerivedObservation
	if err := yaml.UnmarshalStrict(derivedYAML, &out); err != nil {
		panic(fmt.Sprintf("schema/endpoint: derived.yaml: %v", err)) // A test proves that the file decodes.
	}
	return out.Derived
})
