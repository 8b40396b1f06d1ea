package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/schema/load"
)

// uncovered compiles the built-in catalogue and the files, and returns the rules of the resources with barriers. It warns about
// sets that do not apply everywhere.
func uncovered(paths []string, warnings io.Writer) ([]v1alpha1.ResourceRule, error) {
	compiled, errs := load.Offline(paths)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	documents, errs := load.Files(paths)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range documents.Uncovered {
		d := &documents.Uncovered[i]
		for _, warning := range admission.SetWarnings(compiled, d) {
			say(warnings, "warning: %s: UncoveredPermissionSet %q: %s", d.Source, d.Set.Name, warning)
		}
	}
	plurals, err := plurals(paths)
	if err != nil {
		return nil, err
	}
	return webhooks.Uncovered(compiled, documents.Uncovered, plurals), nil
}

// definition is what a CustomResourceDefinition says of its objects.
type definition struct{ plural, scope string }

// plurals returns the resources of the kinds that the files define.
func plurals(paths []string) (map[runtimeschema.GroupKind]string, error) {
	defined, err := definitions(paths)
	out := map[runtimeschema.GroupKind]string{}
	for kind, d := range defined {
		out[kind] = d.plural
	}
	return out, err
}

// definitions returns the kinds that the files define. The files have been loaded before, so their faults have already been reported.
func definitions(paths []string) (map[runtimeschema.GroupKind]definition, error) {
	out := map[runtimeschema.GroupKind]definition{}
	for _, path := range paths {
		names, err := load.Paths(path)
		if err != nil {
			return nil, fmt.Errorf("--permission-schemas: %w", err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("--permission-schemas: %w", err)
			}
			documents, err := manifest.Documents(raw)
			if err != nil {
				return nil, fmt.Errorf("--permission-schemas: %s: %w", name, err)
			}
			for _, document := range documents {
				var object map[string]any
				if err := json.Unmarshal(document, &object); err != nil {
					return nil, fmt.Errorf("--permission-schemas: %s: %w", name, err)
				}
				addDefinitions(out, object)
			}
		}
	}
	return out, nil
}

func addDefinitions(out map[runtimeschema.GroupKind]definition, object map[string]any) {
	switch object["kind"] {
	case "List":
		items, _, _ := unstructured.NestedSlice(object, "items")
		for _, item := range items {
			if object, ok := item.(map[string]any); ok {
				addDefinitions(out, object)
			}
		}
	case "CustomResourceDefinition":
		group, _, _ := unstructured.NestedString(object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object, "spec", "names", "kind")
		var d definition
		d.plural, _, _ = unstructured.NestedString(object, "spec", "names", "plural")
		d.scope, _, _ = unstructured.NestedString(object, "spec", "scope")
		out[runtimeschema.GroupKind{Group: group, Kind: kind}] = d
	}
}
