package sampleobject

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// namespaceMark is the placeholder for the namespace of the object in a sample.
const namespaceMark = "{namespace}"

// New returns a minimal valid object of a kind. The caller may change it. definition is the CustomResourceDefinition of a custom
// resource, nil for a built-in kind. metadata has a name only if the kind requires this name; [Place] sets the rest. The error says
// why there is no object. New never returns an object that is not known to be valid.
func New(gvk runtimeschema.GroupVersionKind, definition *unstructured.Unstructured) (map[string]any, error) {
	if definition == nil {
		return BuiltIn(gvk)
	}
	out, err := custom(gvk, definition)
	return completed(gvk, out, err)
}

// BuiltIn is New for a built-in kind.
func BuiltIn(gvk runtimeschema.GroupVersionKind) (map[string]any, error) {
	out, err := builtIn(gvk.GroupKind())
	return completed(gvk, out, err)
}

func completed(gvk runtimeschema.GroupVersionKind, out map[string]any, err error) (map[string]any, error) {
	if err != nil {
		return nil, fmt.Errorf("sample of %s: %w", gvk.GroupVersion().WithKind(gvk.Kind), err)
	}
	out["apiVersion"], out["kind"] = gvk.GroupVersion().String(), gvk.Kind
	if _, ok := out["metadata"].(map[string]any); !ok {
		out["metadata"] = map[string]any{}
	}
	return out, nil
}

// Place sets the name of an object of [New], unless its kind requires another, and its namespace, "" for a cluster-scoped
// object. A few kinds (Event) repeat the namespace in other fields.
func Place(object map[string]any, name, namespace string) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	if _, ok := metadata["name"]; !ok {
		metadata["name"] = name
	}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	replace(object, namespace)
}

// replace replaces the placeholder by the namespace.
func replace(value any, namespace string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == namespaceMark {
				v[key] = namespace
			} else {
				replace(inner, namespace)
			}
		}
	case []any:
		for _, inner := range v {
			replace(inner, namespace)
		}
	}
}

func builtIn(kind runtimeschema.GroupKind) (map[string]any, error) {
	known, err := loadKinds()
	if err != nil {
		return nil, err
	}
	entry, ok := known[kind]
	switch {
	case !ok:
		return nil, errors.New("the kind is not known: canaries can create built-in kinds of Kubernetes 1.37 and custom resources")
	case entry.Impossible != "":
		return nil, fmt.Errorf("a canary cannot create one: %s", entry.Impossible)
	}
	return runtime.DeepCopyJSON(entry.Object), nil
}
