package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"
)

//go:embed fields.yaml
var fieldTexts []byte

// fieldText is the text about a field that its Go type does not have.
type fieldText struct {
	// Required is true if a file with the parent, but without the field, does not load.
	Required bool   `json:"required,omitempty"`
	Text     string `json:"text"`
}

// file is a configuration file whose types are those of kube-apiserver.
type file struct {
	kind, flag, about string
	object            runtime.Object
}

// files are the configuration files of fieldperm-webhook serve, in the version that is shown.
func files() []file {
	return []file{
		{
			"AuthorizationConfiguration", "--authorization-config",
			"The chain of authorizers that fieldperm asks. The API versions are `v1` and `v1beta1`, and `v1alpha1` with a warning. " +
				"[Webhooks that return conditions](../guide/authorization.md#webhooks-that-return-conditions) have three more settings.", &apiserverv1.AuthorizationConfiguration{},
		},
		{
			"AuthenticationConfiguration", "--authentication-config",
			"The callers of the review API that are known by a token. The API versions are `v1` and `v1beta1`, and `v1alpha1` with a warning.", &apiserverv1.AuthenticationConfiguration{},
		},
		{
			"TracingConfiguration", "--tracing-config-file",
			"Where spans are sent. The API versions are `v1`, `v1beta1` and `v1alpha1`.", &apiserverv1.TracingConfiguration{},
		},
	}
}

// texts returns those of fields.yaml, by kind and path.
func texts() (map[string]map[string]fieldText, error) {
	out := map[string]map[string]fieldText{}
	if err := yaml.UnmarshalStrict(fieldTexts, &out); err != nil {
		return nil, fmt.Errorf("fields.yaml: %w", err)
	}
	return out, nil
}

// fileRows returns a row for each field of a configuration file.
func fileRows(f file, known map[string]fieldText) ([][]string, error) {
	value := reflect.ValueOf(f.object).Elem()
	populate(value)
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.Default(f.object)
	var rows [][]string
	seen := map[string]bool{}
	err := eachField(value, "", func(path string, value reflect.Value) error {
		text, ok := known[path]
		if !ok || text.Text == "" {
			return fmt.Errorf("%s: field %q has no text: write it into docs/reference/generate/fields.yaml", f.kind, path)
		}
		seen[path] = true
		standard, err := defaultValue(value)
		if err != nil {
			return fmt.Errorf("%s: field %q: %w", f.kind, path, err)
		}
		if text.Required {
			standard = "required"
		}
		rows = append(rows, []string{code(path), typeName(value.Type()), standard, sentence(text.Text)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for path := range known {
		if !seen[path] {
			return nil, fmt.Errorf("fields.yaml: %s has no field %q: remove it", f.kind, path)
		}
	}
	return rows, nil
}

// populate gives every list one item and every pointer to a structure one, so that the defaults below
// show.
func populate(value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				populate(value.Field(i))
			}
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Struct {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			populate(value.Index(0))
		}
	case reflect.Pointer:
		if value.Type().Elem().Kind() == reflect.Struct {
			value.Set(reflect.New(value.Type().Elem()))
			populate(value.Elem())
		}
	default: // Other kinds have nothing below them.
	}
}

// eachField calls do for each field at and below a structure that was populated, in the order of the Go type.
// The fields of the object's type and version are left out.
func eachField(value reflect.Value, path string, do func(path string, value reflect.Value) error) error {
	for i := range value.NumField() {
		field := value.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Type == reflect.TypeFor[metav1.TypeMeta](), name == "-":
			continue
		case field.Anonymous && name == "":
			if err := eachField(value.Field(i), path, do); err != nil {
				return err
			}
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		if err := do(at, value.Field(i)); err != nil {
			return err
		}
		below := value.Field(i)
		if below.Kind() == reflect.Slice && below.Len() > 0 {
			at, below = at+"[]", below.Index(0)
		}
		if below.Kind() == reflect.Pointer {
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct && !isDuration(below.Type()) {
			if err := eachField(below, at, do); err != nil {
				return err
			}
		}
	}
	return nil
}

func isDuration(t reflect.Type) bool { return t == reflect.TypeFor[metav1.Duration]() }

// defaultValue is the value of a field that the file does not set, as YAML. It is empty if there is none.
func defaultValue(value reflect.Value) (string, error) {
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	switch {
	case value.Kind() == reflect.Bool:
	case value.IsZero(), value.Kind() == reflect.Slice, value.Kind() == reflect.Struct && !isDuration(value.Type()):
		return "", nil
	}
	raw, err := json.Marshal(value.Interface())
	if err != nil {
		return "", err
	}
	return code(strings.Trim(string(raw), `"`)), nil
}

// typeName is how a user would call the type of a field.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case isDuration(t):
		return "duration"
	case t.Kind() == reflect.Slice:
		return "list of " + plural(typeName(t.Elem()))
	case t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case strings.HasPrefix(t.Kind().String(), "int"):
		return "integer"
	}
	return t.Kind().String()
}

func plural(name string) string {
	if name == "any" {
		return "values"
	}
	return name + "s"
}
