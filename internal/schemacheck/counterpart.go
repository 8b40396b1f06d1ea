package schemacheck

import (
	"iter"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// counterpart is a field in the trees of one kind in two schemas.
type counterpart struct {
	path    fieldpath.Pattern
	was, is *schema.Node
	// moved are the parameters that come from elsewhere on the path, or whose values have another meaning, sorted.
	moved []string
}

// compareTrees visits the fields of a tree that part selects, with their counterparts in another tree of the kind. A pair of nodes that is
// met again with the same moved parameters is visited once, because a schema may unfold without bound. Keys that only one tree singles out
// are compared with the values of the other.
func compareTrees(was, is *schema.Node, part *part, visit func(*counterpart)) {
	type met struct {
		was, is     *schema.Node
		moved, path string
	}
	seen := map[met]bool{}
	var enter func(c counterpart)
	enter = func(c counterpart) {
		at := met{c.was, c.is, strings.Join(c.moved, "\n"), part.place(c.path)}
		if seen[at] || c.was == schema.Unknown() || !part.has(c.path) {
			return
		}
		seen[at] = true
		c.moved = movedBy(c.moved, c.was.Emits(), c.is.Emits())
		visit(&c)
		for e, pair := range c.below() {
			moved := c.moved
			if list := c.was.List(); e.Any && list != nil && pair[0] == list.Item() {
				moved = movedByKeys(moved, list.Keys(), keysOf(pair[1], c.is))
			}
			enter(counterpart{c.path.Child(e), pair[0], pair[1], moved})
		}
	}
	enter(counterpart{was: was, is: is})
}

// part is the part of an object that an endpoint writes. nil is the whole object.
type part struct {
	*endpoint.Endpoint
	// depth is the length of the longest path that the endpoint names.
	depth int
}

func partOf(e *endpoint.Endpoint) *part {
	if e == nil {
		return nil
	}
	out := &part{Endpoint: e}
	for _, f := range e.Fields {
		out.extend(f.Stored())
	}
	for _, refused := range e.Refused {
		out.extend(refused)
	}
	return out
}

func (p *part) extend(path string) {
	if steps, err := fieldpath.ParsePattern(path); err == nil {
		p.depth = max(p.depth, len(steps))
	}
}

func (p *part) has(path fieldpath.Pattern) bool { return p == nil || p.Reaches(path.String()) }

// place returns a path as far as the part depends on it. What is deeper belongs to the part if the field above it does.
func (p *part) place(path fieldpath.Pattern) string {
	if p == nil || len(path) > p.depth {
		return ""
	}
	return path.String()
}

// below returns the nodes directly below a field and their counterparts, the values of an object before its names.
func (c *counterpart) below() iter.Seq2[fieldpath.Element, [2]*schema.Node] {
	return func(yield func(fieldpath.Element, [2]*schema.Node) bool) {
		if was, is := c.was.List(), c.is.List(); was != nil && was.Item() != nil {
			item := schema.Unknown()
			if is != nil && is.Item() != nil {
				item = is.Item()
			}
			if !yield(fieldpath.Element{Any: true}, [2]*schema.Node{was.Item(), item}) {
				return
			}
		}
		was, is := c.was.Map(), c.is.Map()
		if was == nil {
			return
		}
		if was.Parts().Value != nil {
			other := schema.Unknown()
			if is != nil && is.Parts().Value != nil {
				other = is.Parts().Value
			}
			if !yield(fieldpath.Element{Any: true}, [2]*schema.Node{was.Parts().Value, other}) {
				return
			}
		}
		names := was.Names()
		if is != nil {
			names = append(names, is.Names()...)
			slices.Sort(names)
			names = slices.Compact(names)
		}
		for _, name := range names {
			other := schema.Unknown()
			if is != nil {
				other = is.Child(name)
			}
			if !yield(fieldpath.Element{Name: name}, [2]*schema.Node{was.Child(name), other}) {
				return
			}
		}
	}
}

// keysOf returns the keys of the list at a node if its items are the node item.
func keysOf(item, list *schema.Node) []schema.Key {
	if list.List() == nil || list.List().Item() != item {
		return nil
	}
	return list.List().Keys()
}

// movedBy returns the moved parameters below a node that emits the parameter was in one tree and is in the other. Below a node that emits
// a parameter in both, it comes from the same place again.
func movedBy(moved []string, was, is string) []string {
	if was == is {
		return slices.DeleteFunc(slices.Clone(moved), func(name string) bool { return name == was })
	}
	return withNames(moved, was, is)
}

// movedByKeys is movedBy for the keys of the items of a list. The values of keys with another name have another meaning.
func movedByKeys(moved []string, was, is []schema.Key) []string {
	emits := func(keys []schema.Key, k schema.Key) bool {
		return slices.ContainsFunc(keys, func(other schema.Key) bool { return other.Name == k.Name && other.Emits == k.Emits })
	}
	for _, k := range was {
		if emits(is, k) {
			moved = movedBy(moved, k.Emits, k.Emits)
		}
	}
	for _, k := range was {
		if !emits(is, k) {
			moved = withNames(moved, k.Emits)
		}
	}
	for _, k := range is {
		if !emits(was, k) {
			moved = withNames(moved, k.Emits)
		}
	}
	return moved
}

// withNames adds parameters to a sorted list.
func withNames(moved []string, names ...string) []string {
	out := slices.Clone(moved)
	for _, name := range names {
		if at, known := slices.BinarySearch(out, name); name != "" && !known {
			out = slices.Insert(out, at, name)
		}
	}
	return out
}

// covers reports whether the verb, without a parameter, covers the field in the schema after.
func (c *counterpart) covers(v verbs.Verb) bool {
	return slices.ContainsFunc(c.is.Permissions(), func(q *schema.Permission) bool { return q.Base() == v })
}

// keeps reports whether the verb of a permission, and all verbs of its name with a parameter, cover in the schema after what they cover
// in the schema before. Two ways to make a parameter are the same only if they are written in the same way.
func (c *counterpart) keeps(p *schema.Permission) bool {
	if p.ParameterName() == "" {
		return c.covers(p.Base())
	}
	return !slices.Contains(c.moved, p.ParameterName()) && slices.ContainsFunc(c.is.Permissions(), func(q *schema.Permission) bool {
		return q.Base() == p.Base() && q.ParameterName() == p.ParameterName() && q.TakesPrefix() == p.TakesPrefix() && q.Expression() == p.Expression()
	})
}

// takes reports whether the verb v covers the field in the schema before and not in the schema after.
func (c *counterpart) takes(v verbs.Verb) bool {
	_, parameterized := v.Parameter()
	return slices.ContainsFunc(c.was.Permissions(), func(p *schema.Permission) bool {
		return p.MayBe(v) && (parameterized && !c.keeps(p) || !c.covers(p.Base()))
	})
}
