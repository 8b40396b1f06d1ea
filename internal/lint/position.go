package lint

import (
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// position is a place in a file. Lines and columns count from 1.
type position struct {
	line, column int
	// within are the lines on which the places above begin, and the place itself: those of keys and of items. A comment on one of them is about
	// this place as well.
	within []int
}

// step is a node on the way to a place.
type step struct {
	// key is the node of the key, nil for an item of a list and for the root.
	key, value *yamlv3.Node
	// aliased means that the way leads through an alias, so that the node is at other places too.
	aliased bool
}

// begin returns the node at which the place begins for a reader: the key of an object or a list, and the value of anything else.
func (s step) begin() *yamlv3.Node {
	if s.key != nil && s.value.Kind != yamlv3.ScalarNode {
		return s.key
	}
	return s.value
}

// way returns the nodes from the root to the nearest place of a JSON pointer. whole reports whether the place itself is there.
func way(root *yamlv3.Node, pointer string) (steps []step, whole bool) {
	if root == nil {
		return nil, false
	}
	at := step{value: root}
	steps = []step{at}
	if pointer == "" {
		return steps, true
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		next, ok := at.child(name)
		if !ok {
			return steps, false
		}
		at, steps = next, append(steps, next)
	}
	return steps, true
}

// nodeAt returns the node of a pointer, or the nearest above it.
func nodeAt(root *yamlv3.Node, pointer string) (at step, whole bool) {
	steps, whole := way(root, pointer)
	if len(steps) == 0 {
		return step{}, false
	}
	return steps[len(steps)-1], whole
}

func (s step) child(name string) (step, bool) {
	n, aliased := s.value, s.aliased
	if n.Kind == yamlv3.AliasNode {
		n, aliased = n.Alias, true
	}
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name && n.Content[i].Tag != "!!merge" {
				return step{n.Content[i], n.Content[i+1], aliased}, true
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Tag == "!!merge" {
				if out, ok := (step{value: n.Content[i+1], aliased: true}).child(name); ok {
					return out, true
				}
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
			return step{nil, n.Content[i], aliased}, true
		}
	default:
		// Nothing is below a scalar.
	}
	return step{}, false
}

// at returns the place of a pointer, or the nearest above it.
func (o *object) at(pointer string) position {
	steps, _ := way(o.root, pointer)
	if len(steps) == 0 {
		return position{line: o.lines + 1, column: 1, within: []int{o.lines + 1}}
	}
	out := position{}
	for i, s := range steps {
		n := s.value
		if s.key != nil {
			n = s.key
		}
		// The root begins where its first key does. A comment there is about the whole object only if it is above the key.
		if i > 0 {
			out.within = append(out.within, o.lines+n.Line)
		}
	}
	begin := steps[len(steps)-1].begin()
	out.line, out.column = o.lines+begin.Line, begin.Column
	return out
}
