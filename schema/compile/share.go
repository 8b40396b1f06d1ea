package compile

import (
	"bytes"
	"slices"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// sharing replaces equal nodes in the trees of a compile by one node, also across topologies: 500 definitions have the same metadata, and
// most of their fields are alike. It also finds the nodes that have barriers below them.
//
// Two nodes are equal if their own content and the nodes below them are equal. sharing works from the bottom up: once all nodes below a
// node are shared, the content of the node is its own fields and the numbers of the nodes below. The nodes of a cycle (a type that
// contains itself) cannot be numbered one after the other. So a cycle is compared as a whole, from the node where the search entered it.
// An equal cycle that was entered at another node is not recognized, and stays as it was built.
type sharing struct {
	// one is the shared node for each node as built; numbers are the numbers of shared nodes.
	one     map[*schema.Node]*schema.Node
	numbers map[*schema.Node]uint64
	guards  map[*schema.Permission]uint64
	// effects are the contents of permissions without their origins, nil if these count.
	effects map[*schema.Permission]string
	// known are the shared nodes of each content: one node, or those of a cycle.
	known map[string][]*schema.Node

	// path holds the nodes that are entered and not yet closed. entered is the index of each in path (Tarjan's search for cycles).
	path    []*schema.Node
	entered map[*schema.Node]int
	content content
}

func newSharing() *sharing {
	s := &sharing{
		one: map[*schema.Node]*schema.Node{}, numbers: map[*schema.Node]uint64{}, guards: map[*schema.Permission]uint64{},
		known: map[string][]*schema.Node{}, entered: map[*schema.Node]int{},
	}
	for _, n := range []*schema.Node{plain, schema.Unknown()} {
		s.know(s.describe([]*schema.Node{n}), []*schema.Node{n})
	}
	return s
}

// share returns the shared node for n.
func (s *sharing) share(n *schema.Node) *schema.Node {
	if s.one[n] == nil {
		s.enter(n)
	}
	return s.one[n]
}

// enter closes the nodes at and below n. It returns the index in path of the first node that n leads back to. If that is the index of n,
// the path from n on is a cycle, or n alone.
func (s *sharing) enter(n *schema.Node) int {
	at := len(s.path)
	first := at
	s.path, s.entered[n] = append(s.path, n), at
	for _, child := range n.Below() {
		if s.one[child] != nil {
			continue
		}
		back, open := s.entered[child]
		if !open {
			back = s.enter(child)
		}
		first = min(first, back)
	}
	if first < at {
		return first
	}
	members := s.path[at:]
	for _, m := range members {
		delete(s.entered, m)
	}
	s.close(members)
	s.path = s.path[:at]
	return at
}

// close finds or makes the shared nodes for members. All other nodes below them are closed.
func (s *sharing) close(members []*schema.Node) {
	nodes := s.describe(members)
	if same := s.known[string(s.content)]; same != nil {
		for i, n := range nodes {
			s.one[n] = same[i]
		}
		return
	}
	shared := make([]*schema.Node, len(nodes))
	for i := range shared {
		shared[i] = new(schema.Node)
	}
	s.know(nodes, shared)
	parts := make([]schema.NodeParts, len(nodes))
	unbarred, verbless := true, true
	var powers []schema.Power
	for i, n := range nodes {
		parts[i] = s.adopt(n.Parts())
		for _, child := range n.Below() {
			// Members of a cycle are below each other, so a barrier below one is below all: of a member only its own permissions count.
			below, isMember := s.one[child], slices.Contains(nodes, child)
			if isMember {
				below = child
			}
			p := below.Parts()
			verbless = verbless && (isMember || p.Verbless) && len(p.Permissions) == 0
			unbarred = unbarred && (isMember || p.Unbarred) && !slices.ContainsFunc(p.Permissions, (*schema.Permission).MayBar)
			powers = append(powers, powersOf(p)...)
		}
	}
	powers = schema.OrderedPowers(powers)
	for i, n := range shared {
		parts[i].Unbarred, parts[i].Verbless, parts[i].Powers = unbarred, verbless, powers
		n.Make(parts[i])
	}
}

// powersOf returns the powers of a node, and of those below, that a verb above it covers. Fields behind a barrier do not count.
func powersOf(n schema.NodeParts) []schema.Power {
	var out []schema.Power
	for _, p := range n.Permissions {
		if p.Excluded() {
			return out
		}
		if !p.BarsOnly() {
			out = append(out, p.Powers()...)
		}
	}
	return append(out, n.Powers...)
}

// know stores shared nodes under the content that was described last.
func (s *sharing) know(nodes, shared []*schema.Node) {
	s.known[string(s.content)] = shared
	for i, n := range nodes {
		s.one[n], s.numbers[shared[i]] = shared[i], uint64(len(s.numbers))
	}
}

// sameButOrigins reports whether two trees are equal, whatever documents their permissions come from. Equal trees of a compile that is not
// traced are one node. effects are the contents of permissions without their origins.
func sameButOrigins(a, b *schema.Node, effects map[*schema.Permission]string) bool {
	one, two := &sharing{effects: effects}, &sharing{effects: effects}
	seen := map[[2]*schema.Node]bool{}
	var same func(a, b *schema.Node) bool
	same = func(a, b *schema.Node) bool {
		if a == b || seen[[2]*schema.Node{a, b}] {
			return true
		}
		seen[[2]*schema.Node{a, b}] = true
		one.content, two.content = one.content[:0], two.content[:0]
		one.words(a)
		two.words(b)
		var names, theirs []fieldpath.Element
		var below, others []*schema.Node
		for e, n := range a.Below() {
			names, below = append(names, e), append(below, n)
		}
		for e, n := range b.Below() {
			theirs, others = append(theirs, e), append(others, n)
		}
		if !bytes.Equal(one.content, two.content) || !slices.Equal(names, theirs) {
			return false
		}
		for i := range below {
			if !same(below[i], others[i]) {
				return false
			}
		}
		return true
	}
	return a != nil && b != nil && same(a, b)
}

// adopt returns the parts of a node with the shared nodes below it.
func (s *sharing) adopt(p schema.NodeParts) schema.NodeParts {
	if l := p.List; l != nil {
		p.List = schema.NewList(l.Atomic(), l.Keys(), s.one[l.Item()])
	}
	if p.Map != nil {
		m := p.Map.Parts()
		m.Fields, m.Keys = s.all(m.Fields), s.all(m.Keys)
		if m.Value != nil {
			m.Value = s.one[m.Value]
		}
		p.Map = schema.NewMap(m)
	}
	return p
}

// all returns the shared nodes of named nodes.
func (s *sharing) all(nodes map[string]*schema.Node) map[string]*schema.Node {
	if nodes == nil {
		return nil
	}
	out := make(map[string]*schema.Node, len(nodes))
	for name, n := range nodes {
		out[name] = s.one[n]
	}
	return out
}

// describe writes the content of a cycle's members, or of one node. It returns them in the order in which the walk from the first meets
// them.
func (s *sharing) describe(members []*schema.Node) []*schema.Node {
	s.content = s.content[:0]
	nodes := append(make([]*schema.Node, 0, len(members)), members[0])
	place := map[*schema.Node]int{members[0]: 0}
	for i := 0; i < len(nodes); i++ {
		s.words(nodes[i])
		for e, child := range nodes[i].Below() {
			s.text(e.Name)
			if one := s.one[child]; one != nil {
				s.number(s.numbers[one] << 1)
				continue
			}
			if _, met := place[child]; !met {
				place[child] = len(nodes)
				nodes = append(nodes, child)
			}
			s.number(uint64(place[child])<<1 | 1)
		}
	}
	return nodes
}

// words writes the own content of a node, and how many nodes are below it in each way.
func (s *sharing) words(n *schema.Node) {
	s.flags(n.AllowsScalar(), n.List() != nil, n.Map() != nil, n.Default() != nil)
	s.text(string(n.Role()))
	if s.text(n.Emits()); n.Written() != nil {
		s.text(n.Written().Key())
	} else {
		s.text("")
	}
	s.text(string(n.Default()))
	s.permissions(n.Permissions())
	s.number(uint64(len(n.Trees())))
	for _, tree := range n.Trees() {
		s.permissions(tree)
	}
	if l := n.List(); l != nil {
		s.flags(l.Atomic())
		s.number(uint64(len(l.Keys())))
		for _, k := range l.Keys() {
			s.text(k.Name)
			s.text(k.Emits)
			s.flags(k.Default != nil)
			s.text(string(k.Default))
		}
	}
	if n.Map() != nil {
		m := n.Map().Parts()
		s.flags(m.Atomic, m.Value != nil, m.Folds)
		s.number(uint64(len(m.Fields)))
		s.number(uint64(len(m.Keys)))
	}
}

// permissions writes permissions.
func (s *sharing) permissions(permissions []*schema.Permission) {
	s.number(uint64(len(permissions)))
	for _, p := range permissions {
		if s.effects != nil {
			s.text(s.effects[p])
			continue
		}
		if _, known := s.guards[p]; !known {
			s.guards[p] = uint64(len(s.guards))
		}
		s.number(s.guards[p])
	}
}

func (s *sharing) flags(set ...bool) { s.content.flags(set...) }

func (s *sharing) number(n uint64) { s.content.number(int(n)) }

func (s *sharing) text(t string) { s.content.texts(t) }

// hasVerbsBelow computes Verbless from the nodes directly below.
func hasVerbsBelow(p schema.NodeParts) bool {
	for _, child := range schema.NewNode(p).Below() {
		if !child.Parts().Verbless || len(child.Permissions()) > 0 {
			return true
		}
	}
	return false
}

// mayBarBelow computes MayBarWithin from the nodes directly below.
func mayBarBelow(p schema.NodeParts) bool {
	for _, child := range schema.NewNode(p).Below() {
		if child.MayBarWithin() || slices.ContainsFunc(child.Permissions(), (*schema.Permission).MayBar) {
			return true
		}
	}
	return false
}
