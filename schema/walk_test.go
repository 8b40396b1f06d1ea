package schema

import (
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

func fields(of map[string]*Node) *Node { return NewNode(NodeParts{Map: NewMap(MapParts{Fields: of})}) }

func TestGuarded(t *testing.T) {
	guarded := NewNode(NodeParts{Scalar: true, Permissions: []*Permission{NewPermission(PermissionParts{Verb: verbs.All()})}})
	shared := fields(map[string]*Node{"image": guarded, "tty": NewNode(NodeParts{Scalar: true})})
	recursive, bare := new(Node), new(Node)
	recursive.Make(fields(map[string]*Node{"name": guarded, "next": recursive}).Parts())
	bare.Make(fields(map[string]*Node{"next": bare}).Parts())
	// Each level has two ways to the next.
	diamond := guarded
	for range 64 {
		diamond = fields(map[string]*Node{"a": diamond, "b": diamond})
	}
	for name, test := range map[string]struct {
		root  *Node
		limit int
		want  []string
		whole bool
	}{
		"shared":          {fields(map[string]*Node{"x": shared, "y": NewNode(NodeParts{List: NewList(false, nil, shared)})}), 100, []string{".x.image", ".y[*].image"}, true},
		"recursive":       {fields(map[string]*Node{"r": recursive}), 100, []string{".r.name"}, true},
		"nothing guarded": {bare, 100, nil, true},
		"just enough":     {fields(map[string]*Node{"x": shared}), 3, []string{".x.image"}, true},
		"one too few":     {fields(map[string]*Node{"x": shared}), 2, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			whole := (&Kind{Root: test.root}).Guarded(test.limit, func(p fieldpath.Pattern, n *Node) { got = append(got, p.String()) })
			if whole != test.whole || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v; want %q, %v", got, whole, test.want, test.whole)
			}
		})
	}
	places := 0
	if (&Kind{Root: diamond}).Guarded(10_000, func(fieldpath.Pattern, *Node) { places++ }) || places == 0 || places > 10_000 {
		t.Errorf("2^64 places: %d were visited", places)
	}
}
