package compile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// randomNodes returns nodes with random references to each other, also in cycles. They are similar enough for some to be equal. The same
// seed makes the same nodes.
func randomNodes(seed uint64, guards []*schema.Permission) []*schema.Node {
	r := rand.New(rand.NewPCG(seed, 0))
	nodes := make([]*schema.Node, 2+r.IntN(24))
	parts := make([]schema.NodeParts, len(nodes))
	for i := range nodes {
		nodes[i], parts[i] = new(schema.Node), schema.NodeParts{Scalar: r.IntN(2) == 0}
	}
	// Without this limit nearly every node would be in one cycle.
	below := func(i int) *schema.Node {
		if i == len(nodes)-1 || r.IntN(8) == 0 {
			return nodes[r.IntN(len(nodes))]
		}
		return nodes[i+1+r.IntN(len(nodes)-i-1)]
	}
	some := func(i int, names ...string) map[string]*schema.Node {
		out := map[string]*schema.Node{}
		for _, name := range names {
			if r.IntN(2) == 0 {
				out[name] = below(i)
			}
		}
		return out
	}
	for i, n := range nodes {
		p := parts[i]
		if r.IntN(3) == 0 {
			p.List = schema.NewList(r.IntN(2) == 0, nil, below(i))
		}
		if r.IntN(2) == 0 {
			m := schema.MapParts{Fields: some(i, "a", "b"), Keys: some(i, "b", "c")}
			if r.IntN(3) == 0 {
				m.Value = below(i)
			}
			p.Map = schema.NewMap(m)
		}
		if r.IntN(8) == 0 {
			p.Permissions = append(p.Permissions, guards[r.IntN(len(guards))])
		}
		if r.IntN(8) == 0 {
			p.Default = []byte("{}")
		}
		n.Make(p)
	}
	return nodes
}

func someGuards() []*schema.Permission {
	return []*schema.Permission{schema.NewPermission(schema.PermissionParts{Verb: verbs.All()}), schema.NewPermission(schema.PermissionParts{Verb: verbs.All(), Excluded: true})}
}

// fields returns the node of a struct.
func fields(of map[string]*schema.Node) *schema.Node {
	return schema.NewNode(schema.NodeParts{Map: schema.NewMap(schema.MapParts{Fields: of})})
}

// builtUnknown returns a node that is like that of unknown fields.
func builtUnknown() *schema.Node {
	n := new(schema.Node)
	n.Make(schema.NodeParts{Scalar: true, List: schema.NewList(true, nil, n), Map: schema.NewMap(schema.MapParts{Value: n, Folds: true})})
	return n
}

// same compares two trees place by place, to their full depth.
func same(a, b *schema.Node, within map[[2]*schema.Node]bool) error {
	if within[[2]*schema.Node{a, b}] {
		return nil
	}
	within[[2]*schema.Node{a, b}] = true
	if a.AllowsScalar() != b.AllowsScalar() || (a.List() == nil) != (b.List() == nil) || (a.Map() == nil) != (b.Map() == nil) ||
		string(a.Default()) != string(b.Default()) || !slices.Equal(a.Permissions(), b.Permissions()) || a.Role() != b.Role() || a.Emits() != b.Emits() {
		return fmt.Errorf("%+v is not %+v", a, b)
	}
	type edge struct {
		fieldpath.Element
		n *schema.Node
	}
	edges := func(n *schema.Node) (out []edge) {
		for e, child := range n.Below() {
			out = append(out, edge{e, child})
		}
		return out
	}
	of, with := edges(a), edges(b)
	if len(of) != len(with) || a.List() != nil && a.List().Atomic() != b.List().Atomic() || a.Map() != nil && len(a.Map().Parts().Fields) != len(b.Map().Parts().Fields) {
		return fmt.Errorf("%+v has other nodes below it than %+v", a, b)
	}
	for i := range of {
		if of[i].Element != with[i].Element {
			return fmt.Errorf("%+v is not %+v", of[i].Element, with[i].Element)
		}
		if err := same(of[i].n, with[i].n, within); err != nil {
			return fmt.Errorf("%+v: %w", of[i].Element, err)
		}
	}
	return nil
}

func TestSharing_DoesNotChangeATree(t *testing.T) {
	guards, shared := someGuards(), newSharing()
	met, again := map[*schema.Node]bool{}, 0
	for seed := range uint64(3000) {
		nodes, before := randomNodes(seed, guards), randomNodes(seed, guards)
		for i, n := range nodes {
			one := shared.share(n)
			if err := same(one, before[i], map[[2]*schema.Node]bool{}); err != nil {
				t.Fatalf("seed %d, node %d: %v", seed, i, err)
			}
			if met[one] {
				again++
			}
			met[one] = true
		}
	}
	if again == 0 {
		t.Error("nothing was shared")
	}
}

func TestSharing_EqualTreesAreOne(t *testing.T) {
	guards, shared := someGuards(), newSharing()
	for seed := range uint64(1000) {
		first, second := randomNodes(seed, guards)[0], randomNodes(seed, guards)[0]
		if shared.share(first) != shared.share(second) {
			t.Fatalf("seed %d: two trees that are the same are two", seed)
		}
	}
	if got := shared.share(schema.NewNode(schema.NodeParts{Scalar: true})); got != plain {
		t.Error("a scalar of which nothing is said is none")
	}
	if got := shared.share(fields(map[string]*schema.Node{"x": builtUnknown()})); got.Map().Child("x") != schema.Unknown() {
		t.Error("unknown fields are none")
	}
}

// TestSharing_DistinguishesNodes: each of these nodes has other content.
func TestSharing_DistinguishesNodes(t *testing.T) {
	leaf := func() *schema.Node { return schema.NewNode(schema.NodeParts{Scalar: true}) }
	list := func(isAtomic bool, keys ...schema.Key) schema.NodeParts {
		return schema.NodeParts{List: schema.NewList(isAtomic, keys, leaf())}
	}
	object := func(m schema.MapParts) schema.NodeParts { return schema.NodeParts{Map: schema.NewMap(m)} }
	guards := someGuards()
	nodes := map[string]schema.NodeParts{
		"nothing":         {},
		"scalar":          {Scalar: true},
		"default":         {Scalar: true, Default: []byte("1")},
		"another default": {Scalar: true, Default: []byte("11")},
		"empty default":   {Scalar: true, Default: []byte{}},
		"emits":           {Scalar: true, Emits: "1"},
		"role":            {Scalar: true, Role: "1"},
		"open":            {Scalar: true, Permissions: guards[:1]},
		"barred":          {Scalar: true, Permissions: guards[1:]},
		"both":            {Scalar: true, Permissions: guards},
		"both, reversed":  {Scalar: true, Permissions: []*schema.Permission{guards[1], guards[0]}},
		"set":             list(false),
		"atomic list":     list(true),
		"list-map":        list(false, schema.Key{Name: "a"}),
		"other key":       list(false, schema.Key{Name: "b"}),
		"two keys":        list(false, schema.Key{Name: "a"}, schema.Key{Name: "b"}),
		"reversed keys":   list(false, schema.Key{Name: "b"}, schema.Key{Name: "a"}),
		"key emits":       list(false, schema.Key{Name: "a", Emits: "b"}),
		"key default":     list(false, schema.Key{Name: "a", Default: []byte("b")}),
		"no key default":  list(false, schema.Key{Name: "a", Default: []byte{}}),
		"empty struct":    object(schema.MapParts{}),
		"atomic struct":   object(schema.MapParts{Atomic: true}),
		"field":           object(schema.MapParts{Fields: map[string]*schema.Node{"ab": leaf()}}),
		"two fields":      object(schema.MapParts{Fields: map[string]*schema.Node{"a": leaf(), "b": leaf()}}),
		"key":             object(schema.MapParts{Keys: map[string]*schema.Node{"ab": leaf()}}),
		"values":          object(schema.MapParts{Value: leaf()}),
		"field and value": object(schema.MapParts{Fields: map[string]*schema.Node{"": leaf()}, Value: leaf()}),
		"two values":      object(schema.MapParts{Fields: map[string]*schema.Node{"": leaf()}, Keys: map[string]*schema.Node{"": leaf()}}),
		"field below":     object(schema.MapParts{Fields: map[string]*schema.Node{"a": fields(map[string]*schema.Node{"b": leaf()})}}),
		"list or struct":  {List: schema.NewList(false, nil, leaf()), Map: schema.NewMap(schema.MapParts{})},
		"unknown":         builtUnknown().Parts(),
	}
	shared, names := newSharing(), map[*schema.Node]string{}
	for _, name := range sortedKeys(nodes) {
		one := shared.share(schema.NewNode(nodes[name]))
		if other, taken := names[one]; taken {
			t.Errorf("%q is taken for %q", name, other)
		}
		names[one] = name
	}
}

func TestC2_ABarrierIsNotSharedWithTheSameVerbElsewhere(t *testing.T) {
	for _, barred := range []v1alpha1.FieldPermission{
		{Path: ".spec.replicas", Verb: "scale", Excluded: true},
		{Path: ".spec.replicas", Verb: "scale", ExcludedWhen: "self == 1"},
	} {
		free := v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale"}
		s, errs := Compile(things(t, document("a.yaml", "A", RankAdministrator, barred), document("b.yaml", "B", RankAdministrator, free)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if !compiledKind(t, s, "A").MayBar() || compiledKind(t, s, "B").MayBar() {
			t.Errorf("%+v: A bars %v, B bars %v, want only A", barred, compiledKind(t, s, "A").MayBar(), compiledKind(t, s, "B").MayBar())
		}
	}
}

// TestMayBarWithin_FindsEveryBarrierBelow compares MayBarWithin with a separate search from every node.
func TestMayBarWithin_FindsEveryBarrierBelow(t *testing.T) {
	guards := someGuards()
	found := map[bool]int{}
	for seed := range uint64(3000) {
		shared := newSharing()
		for _, n := range randomNodes(seed, guards) {
			one, want, seen := shared.share(n), false, map[*schema.Node]bool{}
			var search func(*schema.Node)
			search = func(n *schema.Node) {
				if seen[n] {
					return
				}
				seen[n] = true
				for _, child := range n.Below() {
					want = want || slices.Contains(child.Permissions(), guards[1])
					search(child)
				}
			}
			search(one)
			if one.MayBarWithin() != want {
				t.Fatalf("seed %d: %v, want %v", seed, one.MayBarWithin(), want)
			}
			found[want]++
		}
	}
	if found[true] < 1000 || found[false] < 1000 {
		t.Errorf("too few of a sort: %v", found)
	}
	if schema.Unknown().MayBarWithin() || plain.MayBarWithin() {
		t.Error("there is a barrier where nothing is known")
	}
	if !new(schema.Node).MayBarWithin() {
		t.Error("of a node that no compile has seen nothing is known: it may hold a barrier")
	}
}
