//go:build integration

package endpoints

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/test/openapi"
)

// step is a name in an object or, if name is empty, an index in a list: -1 stands for an additional item.
type step struct {
	name  string
	index int
}

// edit sets values in a field of a body, or, if it has parts, in each of them.
type edit struct {
	path  []step
	value any
	parts []*edit
}

// leaves are the edits without parts.
func (e *edit) leaves() []*edit {
	if len(e.parts) == 0 {
		return []*edit{e}
	}
	var out []*edit
	for _, part := range e.parts {
		out = append(out, part.leaves()...)
	}
	return out
}

// qualified is the required prefix of the name of a finalizer.
const qualified = "fieldperm.dev/"

// editor makes edits whose values are all different.
type editor struct {
	types openapi.Document
	next  int
	// mark is the prefix of its texts.
	mark string
}

// serverFields are the fields of metadata that the server writes, or that identify the object.
var serverFields = []string{
	"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "selfLink", "managedFields",
}

// edits returns the edits of all fields of a body. It changes the fields of current, and adds the missing ones.
func (e *editor) edits(m *openapi.Type, current map[string]any) *edit {
	out := &edit{}
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		if name == "apiVersion" || name == "kind" {
			continue
		}
		at := []step{{name: name}}
		if name != "metadata" {
			out.add(e.edit(m.Properties[name], current[name], at, nil))
			continue
		}
		meta := e.types.Resolve(m.Properties[name])
		now, _ := current[name].(map[string]any)
		part := &edit{path: at}
		for _, field := range slices.Sorted(maps.Keys(meta.Properties)) {
			if !slices.Contains(serverFields, field) {
				part.add(e.edit(meta.Properties[field], now[field], append(slices.Clone(at), step{name: field}), nil))
			}
		}
		out.add(part)
	}
	return out
}

func (e *edit) add(part *edit) {
	if part != nil {
		e.parts = append(e.parts, part)
	}
}

// edit returns the edit of one field. within are the types around it: a recursive type ends the edit.
func (e *editor) edit(m *openapi.Type, current any, path []step, within []string) *edit {
	m = e.types.Resolve(m)
	name := m.Name
	if name != "" && slices.Contains(within, name) {
		return nil
	}
	if name != "" {
		within = append(slices.Clone(within), name)
	}
	under := func(s step) []step { return append(slices.Clone(path), s) }
	switch {
	case len(m.Properties) > 0:
		out := &edit{path: path}
		now, _ := current.(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(m.Properties)) {
			out.add(e.edit(m.Properties[field], now[field], under(step{name: field}), within))
		}
		if len(out.parts) == 0 {
			return nil
		}
		return out
	case m.Type == "array":
		out := &edit{path: path}
		if now, _ := current.([]any); len(now) > 0 {
			out.add(e.edit(m.Items, now[0], under(step{index: 0}), within))
		}
		value := e.value(m.Items, within)
		if text, ok := value.(string); ok && path[len(path)-1].name == "finalizers" {
			value = qualified + text
		}
		if value != nil {
			out.add(&edit{path: under(step{index: -1}), value: value})
		}
		return out
	case m.Type == "object" && m.Values != nil:
		if value := e.value(m.Values, within); value != nil {
			return &edit{path: under(step{name: e.text()}), value: value}
		}
		return nil
	}
	value := e.scalar(m, name, current)
	if value == nil {
		return nil
	}
	return &edit{path: path, value: value}
}

// value returns a complete value of a type, nil if it would contain itself.
func (e *editor) value(m *openapi.Type, within []string) any {
	m = e.types.Resolve(m)
	name := m.Name
	if name != "" && slices.Contains(within, name) {
		return nil
	}
	if name != "" {
		within = append(slices.Clone(within), name)
	}
	switch {
	case len(m.Properties) > 0:
		out := map[string]any{}
		for _, field := range slices.Sorted(maps.Keys(m.Properties)) {
			if v := e.value(m.Properties[field], within); v != nil {
				out[field] = v
			}
		}
		return out
	case m.Type == "array":
		if v := e.value(m.Items, within); v != nil {
			return []any{v}
		}
		return nil
	case m.Type == "object" && m.Values != nil:
		if v := e.value(m.Values, within); v != nil {
			return map[string]any{e.text(): v}
		}
		return nil
	}
	return e.scalar(m, name, nil)
}

func (e *editor) text() string {
	e.next++
	return fmt.Sprintf("%s%d", e.mark, e.next)
}

// scalar returns a unique value, if the type has enough values.
func (e *editor) scalar(m *openapi.Type, name string, current any) any {
	if len(m.Enum) > 0 {
		for _, v := range m.Enum {
			if v != current && v != "" {
				return v
			}
		}
		return nil
	}
	e.next++
	begin := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(e.next) * time.Second)
	switch {
	case strings.HasSuffix(name, ".Quantity"):
		return fmt.Sprint(1000 + e.next)
	case strings.HasSuffix(name, ".MicroTime"):
		return begin.Format("2006-01-02T15:04:05.000000Z07:00")
	case m.Format == "date-time":
		return begin.Format(time.RFC3339)
	case m.Format == "byte":
		return base64.StdEncoding.EncodeToString([]byte(e.text()))
	case m.Format == "int-or-string", m.Type == "integer":
		return int64(1000 + e.next)
	case m.Type == "string":
		return e.text()
	case m.Type == "number":
		return float64(e.next) + 0.5
	case m.Type == "boolean":
		was, _ := current.(bool)
		return !was
	case m.Type == "object":
		return map[string]any{e.text(): e.text()}
	}
	return nil
}

// apply returns the body with the edits.
func apply(body map[string]any, edits []*edit) map[string]any {
	out := runtime.DeepCopyJSON(body)
	for _, e := range edits {
		put(out, e.path, e.value)
	}
	return out
}

// put sets a value and creates the containers above it. It returns the changed container.
func put(at any, path []step, value any) any {
	if len(path) == 0 {
		return runtime.DeepCopyJSONValue(value)
	}
	s := path[0]
	if s.name == "" {
		list, _ := at.([]any)
		if s.index < 0 || s.index >= len(list) {
			return append(list, put(nil, path[1:], value))
		}
		list[s.index] = put(list[s.index], path[1:], value)
		return list
	}
	object, _ := at.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	object[s.name] = put(object[s.name], path[1:], value)
	return object
}
