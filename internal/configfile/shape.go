package configfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/spelling"
)

// shape compares a value with the type that it is decoded into. It reports every key and every value that does not fit, while a
// decoder stops at the first. It returns the value without these, so that other faults can be found too.
//
// shape only adds positions and cures. k8s.io/apiserver's decoder decides whether the file is valid.
type shape struct {
	report func(path, message, cure string)
	// unknown reports a key that the type does not have. meant is a similar key of the type, or "".
	unknown func(path, meant, cure string)
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	duration    = reflect.TypeFor[metav1.Duration]()
)

// fit returns the part of the value that fits, and whether there is any.
func (s shape) fit(value any, path string, t reflect.Type) (any, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return nil, true
	}
	if t == duration {
		return s.duration(value, path)
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return value, true
	}
	switch {
	case t.Kind() == reflect.Struct:
		fields, ok := value.(map[string]any)
		if !ok {
			s.mismatch(path, value, "a mapping", "indent its fields below it")
			return nil, false
		}
		return s.structure(fields, path, t), true
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		items, ok := value.([]any)
		if !ok {
			s.mismatch(path, value, "a list", "put - before each item")
			return nil, false
		}
		out := make([]any, 0, len(items))
		for i, one := range items {
			// Items keep their indexes. Otherwise faults found later would have wrong positions.
			fitting, _ := s.fit(one, item(path, i), t.Elem())
			out = append(out, fitting)
		}
		return out, true
	case t.Kind() == reflect.String:
		if _, ok := value.(string); !ok {
			s.mismatch(path, value, "a text", "put it in quotes")
			return nil, false
		}
	case t.Kind() == reflect.Bool:
		if _, ok := value.(bool); !ok {
			s.mismatch(path, value, "true or false", "write true or false, without quotes")
			return nil, false
		}
	default:
		raw, err := json.Marshal(value)
		if err == nil {
			err = json.Unmarshal(raw, reflect.New(t).Interface())
		}
		if err != nil {
			s.report(path, oneLine(err.Error()), "")
			return nil, false
		}
	}
	return value, true
}

func (s shape) structure(values map[string]any, path string, t reflect.Type) map[string]any {
	fields := fieldsOf(t)
	names := slices.Sorted(maps.Keys(fields))
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := child(path, key)
		field, ok := fields[key]
		if !ok {
			meant := spelling.Nearest(key, names)
			cure := "remove it: the fields here are " + oneOf(names)
			if deeper := deepest(t, key); path == "" && deeper != "" {
				cure = "move it to " + deeper
			}
			if meant != "" {
				cure = "write " + meant
			}
			s.unknown(at, meant, cure)
			continue
		}
		if fitting, ok := s.fit(values[key], at, field); ok {
			out[key] = fitting
		}
	}
	return out
}

// deepest returns the path of the first field with the name below a type, "" if there is none.
func deepest(t reflect.Type, name string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(unmarshaler) {
		return ""
	}
	fields := fieldsOf(t)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		suffix := ""
		if fields[field].Kind() == reflect.Slice {
			suffix = "[]"
		}
		if field == name {
			return field
		}
		if below := deepest(fields[field], name); below != "" {
			return field + suffix + "." + below
		}
	}
	return ""
}

func (s shape) duration(value any, path string) (any, bool) {
	text, ok := value.(string)
	if !ok {
		s.mismatch(path, value, "a duration", `write a number with its unit, for example "3s"`)
		return nil, false
	}
	if err := new(metav1.Duration).UnmarshalJSON([]byte(quotedJSON(text))); err != nil {
		s.report(path, quoted(text)+" is not a duration", "write a number with its unit (ms, s, m or h), for example 3s")
		return nil, false
	}
	return value, true
}

func quotedJSON(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}

func (s shape) mismatch(path string, value any, want, cure string) {
	s.report(path, fmt.Sprintf("is %s, must be %s", described(value), want), cure)
}

func described(value any) string {
	switch v := value.(type) {
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case json.Number:
		return "the number " + shortened(v.String(), longestValue)
	case string:
		return "the text " + quoted(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return fmt.Sprintf("a %T", value)
}

// fieldsOf returns the fields of a type by their names in a file.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous && name == "":
			maps.Copy(out, fieldsOf(field.Type))
		case name != "":
			out[name] = field.Type
		}
	}
	return out
}
