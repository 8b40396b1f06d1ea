package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// kind is one of fieldperm's own: its Go type has the order of the fields, its definition what else is
// said of them.
type kind struct {
	kind, version, about string
	// inFiles: fieldperm-webhook reads it from files too.
	inFiles bool
	rows    [][]string
}

// kinds returns those of config/crd.
func kinds(root string) ([]kind, error) {
	var out []kind
	for _, own := range []struct {
		file    string
		t       reflect.Type
		inFiles bool
	}{
		{"fieldperm.dev_permissionschemas.yaml", reflect.TypeFor[v1alpha1.PermissionSchema](), true},
		{"fieldperm.dev_conditionalpolicies.yaml", reflect.TypeFor[v1alpha1.ConditionalPolicy](), false},
		{"fieldperm.dev_uncoveredpermissionsets.yaml", reflect.TypeFor[v1alpha1.UncoveredPermissionSet](), true},
		{"fieldperm.dev_permissionobservations.yaml", reflect.TypeFor[v1alpha1.PermissionObservation](), false},
	} {
		raw, err := os.ReadFile(filepath.Join(root, "config", "crd", own.file))
		if err != nil {
			return nil, err
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &definition); err != nil {
			return nil, fmt.Errorf("%s: %w", own.file, err)
		}
		if n := len(definition.Spec.Versions); n != 1 {
			return nil, fmt.Errorf("%s: has %d versions, this generator shows 1: extend it", own.file, n)
		}
		version := definition.Spec.Versions[0]
		schema := version.Schema.OpenAPIV3Schema
		one := kind{kind: own.t.Name(), version: definition.Spec.Group + "/" + version.Name, about: sentence(plain(schema.Description)), inFiles: own.inFiles}
		if err := one.fields(own.t, schema, ""); err != nil {
			return nil, fmt.Errorf("%s: %w", own.file, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// fields adds a row for each field below a structure.
func (k *kind) fields(t reflect.Type, schema *apiextensionsv1.JSONSchemaProps, path string) error {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Type == reflect.TypeFor[metav1.TypeMeta]() || field.Type == reflect.TypeFor[metav1.ObjectMeta]() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := strings.TrimPrefix(path+"."+name, ".")
		found, ok := schema.Properties[name]
		if !ok || found.Description == "" {
			return fmt.Errorf("field %q is not in the definition, or is not described there: write a comment and run go generate in api/v1alpha1", at)
		}
		limits := bounds(&found)
		if slices.Contains(schema.Required, name) {
			limits = append([]string{"required"}, limits...)
		}
		k.rows = append(k.rows, []string{code(at), schemaType(&found), strings.Join(limits, "; "), sentence(plain(found.Description))})
		below, element := &found, field.Type
		if element.Kind() == reflect.Slice {
			at, below, element = at+"[]", found.Items.Schema, element.Elem()
		}
		// A structure of another package, such as a condition, is described there.
		if element.Kind() == reflect.Struct && element.PkgPath() == t.PkgPath() {
			if err := k.fields(element, below, at); err != nil {
				return err
			}
		}
	}
	return nil
}

func schemaType(schema *apiextensionsv1.JSONSchemaProps) string {
	if schema.Type == "array" {
		return "list of " + plural(schemaType(schema.Items.Schema))
	}
	return schema.Type
}

// bounds are the limits that a definition sets for a value.
func bounds(schema *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	add := func(least, most *int64, unit string) {
		switch {
		case least != nil && most != nil:
			out = append(out, fmt.Sprintf("%d to %d %s", *least, *most, unit))
		case most != nil:
			out = append(out, fmt.Sprintf("at most %d %s", *most, unit))
		case least != nil:
			out = append(out, fmt.Sprintf("at least %d %s", *least, unit))
		}
	}
	add(schema.MinItems, schema.MaxItems, "items")
	add(schema.MinLength, schema.MaxLength, "characters")
	if schema.Pattern != "" {
		out = append(out, "matches "+code(schema.Pattern))
	}
	for _, value := range schema.Enum {
		out = append(out, code(strings.Trim(string(value.Raw), `"`)))
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		for _, limit := range bounds(schema.Items.Schema) {
			out = append(out, "each "+limit)
		}
	}
	return out
}
