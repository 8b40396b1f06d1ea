package fieldtree

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Place is a place of a kind: the nodes on the way to it, from the root on.
type Place struct {
	Kind *Kind
	Path fieldpath.Pattern
	way  []*Node
	// values are the values of parameters that the text of the path has.
	values map[string]string
	// selections are what the text has in brackets for steps into lists, by the number of the step.
	selections map[int]Selection
}

// Selection is what the text of a path has in brackets in place of [*]: [name="web"], [="x"], [0].
type Selection struct {
	// Text is what is in the brackets.
	Text string
	// Keys are the keys that it names with their values, "" for the value of the item itself. There are none for an index.
	Keys map[string]string
}

// Selection returns what the text of the path names at a step into a list. It returns false for all items.
func (p *Place) Selection(step int) (Selection, bool) {
	out, has := p.selections[step]
	return out, has
}

// Node returns the node of the place.
func (p *Place) Node() *Node { return p.way[len(p.way)-1] }

// Place returns the place of the object itself.
func (k *Kind) Place() *Place { return &Place{Kind: k, way: []*Node{k.Root}} }

// Above returns the place after the first steps of the way to this one, with the parameters that the whole path has.
func (p *Place) Above(steps int) *Place {
	selections := maps.Clone(p.selections)
	maps.DeleteFunc(selections, func(step int, _ Selection) bool { return step >= steps })
	return &Place{Kind: p.Kind, Path: p.Path[:steps:steps], way: p.way[: steps+1 : steps+1], values: p.values, selections: selections}
}

// Whole returns the first atomic value on the way to the place, nil if there is none. A change of the place changes all of that value and needs
// a verb of it; a barrier between the two needs its own verb in addition (D4).
func (p *Place) Whole() *Place {
	for i, e := range p.Path {
		if n := p.way[i]; n.AtomicMap || n.AtomicList && e.Any {
			return p.Above(i)
		}
	}
	return nil
}

// Child returns the place one step below. A key or a prefix that a map singles out is known as the parameter that the keys of the map give.
func (p *Place) Child(c Child) *Place {
	values := p.values
	if emits := p.Node().Emits; emits != "" && !c.Any && values[emits] != c.Name {
		values = maps.Clone(values)
		if values == nil {
			values = map[string]string{}
		}
		values[emits] = c.Name
	}
	return &Place{Kind: p.Kind, Path: p.Path.Child(c.Element), way: append(p.way[:len(p.way):len(p.way)], c.Node), values: values, selections: p.selections}
}

// Repeats returns the place on the way to this one that has the same node, nil if there is none: from there on the tree repeats.
func (p *Place) Repeats() *Place {
	for i, n := range p.way[:len(p.way)-1] {
		if n == p.Node() {
			return &Place{Kind: p.Kind, Path: p.Path[:i], way: p.way[:i+1]}
		}
	}
	return nil
}

// Find returns the place that a text names. The text is a path of a permission schema (.spec.containers[*].image), or one as kubectl
// explain takes it, without the first dot and without the steps into lists (spec.containers.image), or the path of a message, with
// items by their keys (.spec.containers[name="web"].image). The error names the nearest field.
func (k *Kind) Find(text string) (*Place, error) {
	path, keys, err := parse(text)
	if err != nil {
		return nil, err
	}
	p := k.Place()
	p.values, p.selections = map[string]string{}, map[int]Selection{}
	for _, e := range path {
		if !e.Any {
			p = p.throughItems(e)
		}
		c, ok := p.Node().child(e)
		if !ok {
			return nil, p.unknown(text, e)
		}
		var item Selection
		if e.Any && len(keys) > 0 {
			item, keys = keys[0], keys[1:]
		}
		if item.Text != "" && item.Text != "*" {
			p.selections[len(p.Path)] = item
		}
		p.remember(e, c.Node, item.Keys)
		p = p.Child(c)
	}
	return p, nil
}

// remember adds the values of parameters that a step has: the key of a map, or the keys of an item.
func (p *Place) remember(e fieldpath.Element, below *Node, item map[string]string) {
	n := p.Node()
	if !e.Any && n.Emits != "" {
		p.values[n.Emits] = e.Name
	}
	for key, value := range item {
		if emits := n.KeyEmits[key]; emits != "" {
			p.values[emits] = value
		}
		if key == "" && below.Emits != "" {
			p.values[below.Emits] = value
		}
	}
}

// throughItems returns the place of the items of a list, for a step that names a field of them.
func (p *Place) throughItems(e fieldpath.Element) *Place {
	for range 8 { // Lists of lists end soon; a list that contains itself does not.
		c, isList := p.Node().child(fieldpath.Element{Any: true})
		if _, named := p.Node().child(e); named || !isList || !strings.HasPrefix(p.Node().Type, "[]") {
			return p
		}
		p = p.Child(c)
	}
	return p
}

// child returns the child at a step. The values of a map are the child for every key that the map does not single out.
func (n *Node) child(e fieldpath.Element) (Child, bool) {
	var values, prefix *Child
	for i := range n.Children {
		c := &n.Children[i]
		switch {
		case c.Element == e:
			return *c, true
		case c.Any:
			values = c
		case !e.Any && strings.HasSuffix(c.Name, "/") && strings.HasPrefix(e.Name, c.Name):
			prefix = c
		}
	}
	switch {
	case prefix != nil:
		return Child{e, prefix.Node}, true
	case values != nil && !e.Any && !strings.HasPrefix(n.Type, "[]"):
		return Child{e, values.Node}, true
	}
	return Child{}, false
}

// unknown returns the error for a step that does not exist.
func (p *Place) unknown(text string, e fieldpath.Element) error {
	where := "the object"
	if len(p.Path) > 0 {
		where = strconv.Quote(p.Path.String())
	}
	known := names(p.Node())
	switch {
	case len(known) == 0:
		return fmt.Errorf("path %q of %s: has a step below %s, where no field is known: leave it out", text, p.Kind.Kind, where)
	case e.Any:
		return fmt.Errorf("path %q of %s: %s is no list or map: name one of its fields: %s", text, p.Kind.Kind, where, listed(known))
	}
	if near := spelling.Nearest(e.Name, known); near != "" {
		return fmt.Errorf("path %q of %s: %s has no field %q: use %q", text, p.Kind.Kind, where, e.Name, near)
	}
	return fmt.Errorf("path %q of %s: %s has no field %q: use one of %s", text, p.Kind.Kind, where, e.Name, listed(known))
}

// names returns the names of the fields of a node.
func names(n *Node) []string {
	var out []string
	for _, c := range n.Children {
		if !c.Any {
			out = append(out, c.Name)
		}
	}
	return out
}

// maxListed bounds the names in an error.
const maxListed = 12

func listed(names []string) string {
	if len(names) > maxListed {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", len(names)-maxListed)
	}
	return strings.Join(names, ", ")
}

// parse parses a path in any of the forms that Find takes.
func parse(text string) (fieldpath.Pattern, []Selection, error) {
	pattern := text
	if pattern != "" && pattern[0] != '.' && pattern[0] != '[' {
		pattern = "." + pattern
	}
	pattern, keys := cutKeys(strings.TrimSuffix(pattern, "."))
	out, err := fieldpath.ParsePattern(pattern)
	return out, keys, err
}

// cutKeys replaces the keys by which a message names an item of a list with [*]: [name="web"], [="x"], [0]. It returns what is in
// the brackets of each [*].
func cutKeys(text string) (pattern string, keys []Selection) {
	var out strings.Builder
	for {
		open := strings.IndexByte(text, '[')
		if open < 0 {
			return out.String() + text, keys
		}
		end := fieldpath.Closing(text[open:])
		if end < 2 {
			return out.String() + text, keys
		}
		inside := text[open+1 : open+end]
		out.WriteString(text[:open])
		if inside[0] == '"' {
			out.WriteString("[" + inside + "]")
		} else {
			out.WriteString("[*]")
			keys = append(keys, Selection{inside, keysOf(inside)})
		}
		text = text[open+end+1:]
	}
}

// keysOf returns the keys of an item that are scalars: name="web",x=1.
func keysOf(text string) map[string]string {
	out := map[string]string{}
	for {
		name, rest, found := strings.Cut(text, "=")
		if !found {
			return out
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			out[name], text, _ = strings.Cut(rest, ",")
			continue
		}
		if value, err := strconv.Unquote(quoted); err == nil {
			out[name] = value
		}
		text = strings.TrimPrefix(rest[len(quoted):], ",")
	}
}
