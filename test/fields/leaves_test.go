//go:build integration

package fields

import (
	"fmt"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// wrote is a field that the API server wrote in addition to the request.
type wrote struct {
	// names are the path to it, with nil for an item of a list.
	names   []string
	was, is any
}

// comparison finds the fields that the API server wrote in addition to the request.
type comparison struct {
	// before is nil for a new object.
	before, asked, after map[string]any
	out                  map[string]wrote
}

func compare(kind *schema.Kind, before, asked, after map[string]any) map[string]wrote {
	c := &comparison{before: before, asked: asked, after: after, out: map[string]wrote{}}
	if before == nil {
		c.at(kind.Root, "", []string{}, nil, asked, after)
	} else {
		c.at(kind.Root, "", []string{}, before, asked, after)
	}
	return c.out
}

func (c *comparison) at(node *schema.Node, path string, names []string, before, asked, after any) {
	if node.Role() != schema.RoleNone || reflect.DeepEqual(asked, after) {
		return
	}
	is, wasObject := after.(map[string]any)
	want, wantObject := asked.(map[string]any)
	switch {
	case node.Map() != nil && !node.Map().Atomic() && (wasObject || wantObject) && (wasObject || after == nil) && (wantObject || asked == nil) && len(is)+len(want) > 0:
		was, _ := before.(map[string]any)
		for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(sorted(is), sorted(want))))) {
			var below []string
			if names != nil {
				below = slices.Concat(names, []string{name})
			}
			c.at(node.Map().Child(name), fieldpath.Extend(path, name), below, was[name], want[name], is[name])
		}
	case node.List() != nil && !node.List().Atomic():
		c.items(node.List(), path, before, asked, after)
	default:
		c.leaf(node, path, names, before, asked, after)
	}
}

// leaf notes a field if the request did not change it and the API server did.
func (c *comparison) leaf(node *schema.Node, path string, names []string, before, asked, after any) {
	if c.before == nil {
		if asked == nil && after != nil && !isDefault(node, after) {
			c.note(path, wrote{names, nil, after})
		}
		return
	}
	if reflect.DeepEqual(before, asked) {
		c.note(path, wrote{names, before, after})
	}
}

// note keeps only the common result of several items.
func (c *comparison) note(path string, w wrote) {
	if known, ok := c.out[path]; ok && !reflect.DeepEqual(known, w) {
		w.is, w.was = []any{known.is, w.is}, []any{known.was, w.was}
	}
	c.out[path] = w
}

// items compares the items of a list with keys. A new item is charged as a whole, so that the fields below it do not matter.
func (c *comparison) items(list *schema.List, path string, before, asked, after any) {
	key := func(item any) string {
		object, ok := item.(map[string]any)
		if !ok || len(list.Keys()) == 0 {
			return fmt.Sprint(item)
		}
		out := ""
		for _, k := range list.Keys() {
			v := object[k.Name]
			if v == nil && k.Default != nil {
				_ = utiljson.Unmarshal(k.Default, &v)
			}
			out += fmt.Sprintf("%v\x00", v)
		}
		return out
	}
	byKey := func(v any) map[string]any {
		out := map[string]any{}
		items, _ := v.([]any)
		for _, item := range items {
			out[key(item)] = item
		}
		return out
	}
	was, want, is := byKey(before), byKey(asked), byKey(after)
	for _, k := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(sorted(want), sorted(is))))) {
		switch {
		case want[k] == nil:
			if was[k] == nil {
				c.note(path+"[*]", wrote{nil, nil, is[k]})
			}
		case is[k] == nil:
			if was[k] != nil {
				c.note(path+"[*]", wrote{nil, was[k], nil})
			}
		case was[k] != nil:
			c.at(list.Item(), path+"[*]", nil, was[k], want[k], is[k])
		}
	}
}

func isDefault(node *schema.Node, v any) bool {
	var fallback any
	return node.Default() != nil && utiljson.Unmarshal(node.Default(), &fallback) == nil && reflect.DeepEqual(fallback, v)
}

// at follows names.
func at(object map[string]any, names []string) any {
	var v any = object
	for _, name := range names {
		below, _ := v.(map[string]any)
		v = below[name]
	}
	return v
}
