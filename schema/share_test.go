package schema

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// randomNodes returns nodes with random references to each other, also in cycles. They are similar enough for some to be equal. The same
// seed makes the same nodes.
func randomNodes(seed uint64, guards []*Permission) []*Node {
	r := rand.New(rand.NewPCG(seed, 0))
	nodes := make([]*Node, 2+r.IntN(24))
	for i := range nodes {
		nodes[i] = &Node{scalar: r.IntN(2) == 0}
	}
	// Without this limit nearly every node would be in one cycle.
	below := func(i int) *Node {
		if i == len(nodes)-1 || r.IntN(8) == 0 {
			return nodes[r.IntN(len(nodes))]
		}
		return nodes[i+1+r.IntN(len(nodes)-i-1)]
	}
	some := func(i int, names ...string) map[string]*Node {
		out := map[string]*Node{}
		for _, name := range names {
			if r.IntN(2) == 0 {
				out[name] = below(i)
			}
		}
		return out
	}
	for i, n := range nodes {
		if r.IntN(3) == 0 {
			n.list = &List{atomic: r.IntN(2) == 0, item: below(i)}
		}
		if r.IntN(2) == 0 {
			n.mapping = &Map{fields: some(i, "a", "b"), keys: some(i, "b", "c")}
			if r.IntN(3) == 0 {
				n.mapping.value = below(i)
			}
		}
		if r.IntN(8) == 0 {
			n.permissions = append(n.permissions, guards[r.IntN(len(guards))])
		}
		if r.IntN(8) == 0 {
			n.fallback = []byte("{}")
		}
	}
	return nodes
}

func someGuards() []*Permission {
	return []*Permission{{verb: verbs.All()}, {verb: verbs.All(), excluded: true}}
}

// same compares two trees place by place, to their full depth.
func same(a, b *Node, within map[[2]*Node]bool) error {
	if within[[2]*Node{a, b}] {
		return nil
	}
	within[[2]*Node{a, b}] = true
	if a.scalar != b.scalar || (a.list == nil) != (b.list == nil) || (a.mapping == nil) != (b.mapping == nil) ||
		string(a.fallback) != string(b.fallback) || !slices.Equal(a.permissions, b.permissions) || a.role != b.role || a.emits != b.emits {
		return fmt.Errorf("%+v is not %+v", a, b)
	}
	type edge struct {
		fieldpath.Element
		n *Node
	}
	edges := func(n *Node) (out []edge) {
		children(n, func(e fieldpath.Element, child *Node) { out = append(out, edge{e, child}) })
		return out
	}
	of, with := edges(a), edges(b)
	if len(of) != len(with) || a.list != nil && a.list.atomic != b.list.atomic || a.mapping != nil && len(a.mapping.fields) != len(b.mapping.fields) {
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
	apart := 0
	for seed := range uint64(3000) {
		nodes, before := randomNodes(seed, guards), randomNodes(seed, guards)
		for i, n := range nodes {
			one := shared.share(n)
			if err := same(one, before[i], map[[2]*Node]bool{}); err != nil {
				t.Fatalf("seed %d, node %d: %v", seed, i, err)
			}
			if one != n {
				apart++
			}
		}
	}
	if apart == 0 {
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
	if got := shared.share(&Node{scalar: true}); got != plain {
		t.Error("a scalar of which nothing is said is none")
	}
	built := newUnknown()
	if got := shared.share(fields(map[string]*Node{"x": built})); got.mapping.fields["x"] != unknown {
		t.Error("unknown fields are none")
	}
}

// TestSharing_DistinguishesNodes: each of these nodes has other content.
func TestSharing_DistinguishesNodes(t *testing.T) {
	leaf := func() *Node { return &Node{scalar: true} }
	list := func(l List) *Node {
		l.item = leaf()
		return &Node{list: &l}
	}
	guards := someGuards()
	nodes := map[string]*Node{
		"nothing":         {},
		"scalar":          leaf(),
		"default":         {scalar: true, fallback: []byte("1")},
		"another default": {scalar: true, fallback: []byte("11")},
		"empty default":   {scalar: true, fallback: []byte{}},
		"emits":           {scalar: true, emits: "1"},
		"role":            {scalar: true, role: "1"},
		"open":            {scalar: true, permissions: guards[:1]},
		"barred":          {scalar: true, permissions: guards[1:]},
		"both":            {scalar: true, permissions: guards},
		"both, reversed":  {scalar: true, permissions: []*Permission{guards[1], guards[0]}},
		"set":             list(List{}),
		"atomic list":     list(List{atomic: true}),
		"list-map":        list(List{keys: []Key{{Name: "a"}}}),
		"other key":       list(List{keys: []Key{{Name: "b"}}}),
		"two keys":        list(List{keys: []Key{{Name: "a"}, {Name: "b"}}}),
		"reversed keys":   list(List{keys: []Key{{Name: "b"}, {Name: "a"}}}),
		"key emits":       list(List{keys: []Key{{Name: "a", Emits: "b"}}}),
		"key default":     list(List{keys: []Key{{Name: "a", Default: []byte("b")}}}),
		"no key default":  list(List{keys: []Key{{Name: "a", Default: []byte{}}}}),
		"empty struct":    {mapping: &Map{}},
		"atomic struct":   {mapping: &Map{atomic: true}},
		"field":           {mapping: &Map{fields: map[string]*Node{"ab": leaf()}}},
		"two fields":      {mapping: &Map{fields: map[string]*Node{"a": leaf(), "b": leaf()}}},
		"key":             {mapping: &Map{keys: map[string]*Node{"ab": leaf()}}},
		"values":          {mapping: &Map{value: leaf()}},
		"field and value": {mapping: &Map{fields: map[string]*Node{"": leaf()}, value: leaf()}},
		"two values":      {mapping: &Map{fields: map[string]*Node{"": leaf()}, keys: map[string]*Node{"": leaf()}}},
		"field below":     fields(map[string]*Node{"a": fields(map[string]*Node{"b": leaf()})}),
		"list or struct":  {list: &List{item: leaf()}, mapping: &Map{}},
		"unknown":         newUnknown(),
	}
	shared, names := newSharing(), map[*Node]string{}
	for _, name := range sortedKeys(nodes) {
		one := shared.share(nodes[name])
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
			one, want, seen := shared.share(n), false, map[*Node]bool{}
			var search func(*Node)
			search = func(n *Node) {
				if seen[n] {
					return
				}
				seen[n] = true
				children(n, func(_ fieldpath.Element, child *Node) {
					want = want || slices.Contains(child.permissions, guards[1])
					search(child)
				})
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
	if unknown.MayBarWithin() || plain.MayBarWithin() {
		t.Error("there is a barrier where nothing is known")
	}
	if !new(Node).MayBarWithin() {
		t.Error("of a node that no compile has seen nothing is known: it may hold a barrier")
	}
}
