package livefield

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Kind is a kind as a tree and as it compares.
type Kind struct {
	Tree *fieldtree.Kind
	Root *schema.Node
}

// Field is a field of one object. The field itself need not be there; the items of lists on the way to it are.
type Field struct {
	Path fieldpath.Path
	// Place is the place of the field in its kind, with the parameters that the path has.
	Place *fieldtree.Place
	// Charged is the place of what a change of the field changes: a list, if the field identifies an item of it or if the items of the list on the
	// way cannot be told apart. Otherwise it is Place. If it is inside of an atomic value, Charged.Whole is changed too.
	Charged *fieldtree.Place
	// steps lead to the field: a string for the key of an object, an int for the index of an item.
	steps []any
}

// cursor is a place on the way to a field.
type cursor struct {
	path  fieldpath.Path
	steps []any
	node  *schema.Node
	value any
	// charged is the path of the list that is charged as a whole, nil for none.
	charged *fieldpath.Path
	// list is the path of the list whose item this is, keys are the properties that identify it.
	list *fieldpath.Path
	keys []schema.Key
}

// Resolve returns the fields that a path names in an object, which is decoded JSON. A step [*], or a list without a step into it, means each item
// that is there. The error names the nearest field, or the items that are there.
func Resolve(k Kind, object any, text string) ([]Field, error) {
	place, err := k.Tree.Find(text)
	if err != nil {
		return nil, err
	}
	steps, err := parse(text)
	if err != nil {
		return nil, err
	}
	all := []cursor{{node: k.Root, value: object}}
	for _, e := range place.Path {
		step := written{isItem: true, inBrackets: true, index: -1}
		if len(steps) > 0 && (steps[0].isItem == e.Any) {
			step, steps = steps[0], steps[1:]
		}
		var next []cursor
		for _, c := range all {
			if !e.Any {
				next = append(next, c.named(e.Name, step.inBrackets))
				continue
			}
			below, err := c.items(text, step)
			if err != nil {
				return nil, err
			}
			next = append(next, below...)
		}
		if all = next; len(all) == 0 {
			return nil, fmt.Errorf("path %q: names no item that is there: name a field above, or create an item first", text)
		}
	}
	out := make([]Field, 0, len(all))
	for i := range all {
		field, err := all[i].field(k)
		if err != nil {
			return nil, err
		}
		out = append(out, field)
	}
	return out, nil
}

// field returns the field at a cursor.
func (c *cursor) field(k Kind) (Field, error) {
	out := Field{Path: c.path, steps: c.steps}
	var err error
	if out.Place, err = k.Tree.Find(textOf(c.path)); err != nil {
		return Field{}, err
	}
	out.Charged = out.Place
	if c.charged != nil {
		out.Charged, err = k.Tree.Find(textOf(*c.charged))
	}
	return out, err
}

// textOf returns a path as Find takes it.
func textOf(p fieldpath.Path) string {
	if p.IsRoot() {
		return ""
	}
	return p.String()
}

// Text returns the path as text, "" for the object itself.
func (f *Field) Text() string { return textOf(f.Path) }

func (c *cursor) then(path fieldpath.Path, step any, node *schema.Node, value any) cursor {
	return cursor{path: path, steps: append(c.steps[:len(c.steps):len(c.steps)], step), node: node, value: value, charged: c.charged}
}

// named returns the cursor at a field or at the key of a map.
func (c *cursor) named(name string, inBrackets bool) cursor {
	path := c.path.Field(name)
	if inBrackets {
		path = c.path.Key(name)
	}
	var below *schema.Node
	if c.node != nil && c.node.Map() != nil {
		below = c.node.Map().Child(name)
	}
	object, _ := c.value.(map[string]any)
	out := c.then(path, name, below, object[name])
	// A change of what identifies an item removes the item and adds another one.
	if c.list != nil && out.charged == nil && slices.ContainsFunc(c.keys, func(k schema.Key) bool { return k.Name == name }) {
		out.charged = c.list
	}
	return out
}

// items returns the cursors at the items of a list or the entries of a map that a step selects.
func (c *cursor) items(text string, step written) ([]cursor, error) {
	if object, isObject := c.value.(map[string]any); isObject {
		return c.entries(text, object, step)
	}
	list, _ := c.value.([]any)
	var compared *schema.List
	if c.node != nil {
		compared = c.node.List()
	}
	charged := c.charged
	if charged == nil && compared != nil && !compared.Atomic() && !distinct(compared, list) {
		charged = &c.path
	}
	var out []cursor
	for i, item := range list {
		if !step.selects(i, item) {
			continue
		}
		path := c.path.Index(i)
		if compared != nil && !compared.Atomic() {
			if len(compared.Keys()) == 0 {
				path = c.path.Member(jsonOf(item))
			} else {
				path = c.path.Item(keysOf(compared, item))
			}
		}
		var node *schema.Node
		if compared != nil {
			node = compared.Item()
		}
		next := c.then(path, i, node, item)
		next.charged = charged
		if compared != nil && !compared.Atomic() {
			list := c.path
			next.list, next.keys = &list, compared.Keys()
		}
		out = append(out, next)
	}
	if len(out) == 0 && (step.index >= 0 || step.keys != nil) {
		return nil, c.noItem(text, compared, list, step)
	}
	if len(out) > 1 && step.keys != nil {
		return nil, fmt.Errorf("path %q: %d items of %q have these keys: name one by its index", text, len(out), c.path.String())
	}
	return out, nil
}

// entries returns the cursors at the entries of a map.
func (c *cursor) entries(text string, object map[string]any, step written) ([]cursor, error) {
	if step.index >= 0 || step.keys != nil {
		return nil, fmt.Errorf("path %q: %q is a map: name a key, as in [\"key\"]", text, c.path.String())
	}
	var out []cursor
	for _, name := range slices.Sorted(maps.Keys(object)) {
		out = append(out, c.named(name, true))
	}
	return out, nil
}

// selects reports whether the step selects an item.
func (w *written) selects(i int, item any) bool {
	if w.index >= 0 {
		return i == w.index
	}
	for name, want := range w.keys {
		value := item
		if name != "" {
			object, _ := item.(map[string]any)
			value = object[name]
		}
		if value == nil || scalarText(value) != want {
			return false
		}
	}
	return true
}

// scalarText returns a scalar as users write it.
func scalarText(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	return string(jsonOf(value))
}

func jsonOf(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil {
		return []byte("null") // Decoded JSON can be encoded.
	}
	return out
}

// keysOf returns the properties that identify an item of a list-map.
func keysOf(compared *schema.List, item any) []fieldpath.Key {
	object, _ := item.(map[string]any)
	var out []fieldpath.Key
	for _, k := range compared.Keys() {
		value := k.Default
		if has, ok := object[k.Name]; ok {
			value = jsonOf(has)
		}
		out = append(out, fieldpath.Key{Name: k.Name, Value: value})
	}
	return out
}

// distinct reports whether the items of a list-map or a set can be told apart.
func distinct(compared *schema.List, list []any) bool {
	seen := map[string]bool{}
	for _, item := range list {
		id := string(jsonOf(item))
		if len(compared.Keys()) > 0 {
			var text strings.Builder
			for _, k := range keysOf(compared, item) {
				if k.Value == nil {
					return false
				}
				text.WriteString(strconv.Quote(string(k.Value)))
			}
			id = text.String()
		}
		if seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// maxListed bounds the items in an error.
const maxListed = 8

// noItem returns the error for an item that is not there.
func (c *cursor) noItem(text string, compared *schema.List, list []any, step written) error {
	where := c.path.String()
	if len(list) == 0 {
		return fmt.Errorf("path %q: %q has no items: name a field above, or create the item first", text, where)
	}
	if step.index >= 0 {
		return fmt.Errorf("path %q: %q has %d items: use an index below %d", text, where, len(list), len(list))
	}
	var have []string
	for _, item := range list {
		if len(have) == maxListed {
			have = append(have, fmt.Sprintf("%d more", len(list)-maxListed))
			break
		}
		var path fieldpath.Path
		switch {
		case compared == nil || compared.Atomic():
			path = fieldpath.Path{}.Item(likeWritten(step, item))
		case len(compared.Keys()) == 0:
			path = fieldpath.Path{}.Member(jsonOf(item))
		default:
			path = fieldpath.Path{}.Item(keysOf(compared, item))
		}
		have = append(have, path.String())
	}
	return fmt.Errorf("path %q: %q has no such item: use %s", text, where, strings.Join(have, " or "))
}

// likeWritten returns the keys that the user asked for, with the values of another item.
func likeWritten(step written, item any) []fieldpath.Key {
	object, _ := item.(map[string]any)
	var out []fieldpath.Key
	for _, name := range slices.Sorted(maps.Keys(step.keys)) {
		out = append(out, fieldpath.Key{Name: name, Value: jsonOf(object[name])})
	}
	return out
}
