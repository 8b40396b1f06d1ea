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
			fmt.Fprintf(warnings, "warning: %s: UncoveredPermissionSet %q: %s\n", d.Source, d.Set.Name, warning)
		}
	}
	plurals, err := plurals(paths)
	if err != nil {
		return nil, err
	}
	return webhooks.Uncovered(compiled, documents.Uncovered, plurals), nil
}

// plurals returns the resources of the kinds that the files define. The files have been loaded before, so their faults have already
// been reported.
func plurals(paths []string) (map[runtimeschema.GroupKind]string, error) {
	out := map[runtimeschema.GroupKind]string{}
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
				addPlurals(out, object)
			}
		}
	}
	return out, nil
}

func addPlurals(out map[runtimeschema.GroupKind]string, object map[string]any) {
	switch object["kind"] {
	case "List":
		items, _, _ := unstructured.NestedSlice(object, "items")
		for _, item := range items {
			if object, ok := item.(map[string]any); ok {
				addPlurals(out, object)
			}
		}
	case "CustomResourceDefinition":
		group, _, _ := unstructured.NestedString(object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object, "spec", "names", "kind")
		out[runtimeschema.GroupKind{Group: group, Kind: kind}], _, _ = unstructured.NestedString(object, "spec", "names", "plural")
	}
}
