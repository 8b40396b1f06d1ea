package livefield

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Set returns the object with another value of the field. A nil value removes the field, as null does in a patch. Objects on the way that are not
// there are created. The object that is given does not change.
func (f *Field) Set(object map[string]any, value any) (map[string]any, error) {
	out := runtime.DeepCopyJSON(object)
	if len(f.steps) == 0 {
		whole, isObject := value.(map[string]any)
		if !isObject {
			return nil, fmt.Errorf("value of the object: is no JSON object: give one, or name a field")
		}
		return runtime.DeepCopyJSON(whole), nil
	}
	changed, err := put(out, f.steps, runtime.DeepCopyJSONValue(value))
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", f.Path.String(), err)
	}
	out, _ = changed.(map[string]any)
	return out, nil
}

// put returns a value with another value at the end of the steps.
func put(at any, steps []any, value any) (any, error) {
	switch step := steps[0].(type) {
	case string:
		object, isObject := at.(map[string]any)
		if at == nil {
			if value == nil {
				return nil, nil // What is not there needs no removal.
			}
			object, isObject = map[string]any{}, true
		}
		if !isObject {
			return nil, fmt.Errorf("%q is below a value that is no object: set the value above", step)
		}
		if len(steps) == 1 {
			if value == nil {
				delete(object, step)
			} else {
				object[step] = value
			}
			return object, nil
		}
		below, err := put(object[step], steps[1:], value)
		if err != nil {
			return nil, err
		}
		if below != nil {
			object[step] = below
		}
		return object, nil
	case int:
		list, isList := at.([]any)
		if !isList || step >= len(list) {
			return nil, fmt.Errorf("item %d is not there: name one that is", step)
		}
		if len(steps) == 1 && value == nil {
			return append(list[:step:step], list[step+1:]...), nil
		}
		if len(steps) == 1 {
			list[step] = value
			return list, nil
		}
		below, err := put(list[step], steps[1:], value)
		if err != nil {
			return nil, err
		}
		list[step] = below
		return list, nil
	}
	return nil, fmt.Errorf("step %v is neither a name nor an index", steps[0])
}

// Pointer returns the field as a JSON pointer (RFC 6901).
func (f *Field) Pointer() string {
	names := make([]string, len(f.steps))
	for i, step := range f.steps {
		names[i] = fmt.Sprint(step)
	}
	return fieldpath.Pointer("", names...)
}
