package schema

import (
	"bytes"
	"slices"

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
	one     map[*Node]*Node
	numbers map[*Node]uint64
	guards  map[*Permission]uint64
	// byEffect means that the origins of permissions do not count.
	byEffect bool
	// known are the shared nodes of each content: one node, or those of a cycle.
	known map[string][]*Node

	// path holds the nodes that are entered and not yet closed. entered is the index of each in path (Tarjan's search for cycles).
	path    []*Node
	entered map[*Node]int
	content content
}

func newSharing() *sharing {
	s := &sharing{
		one: map[*Node]*Node{}, numbers: map[*Node]uint64{}, guards: map[*Permission]uint64{},
		known: map[string][]*Node{}, entered: map[*Node]int{},
	}
	for _, n := range []*Node{plain, unknown} {
		s.know(s.describe([]*Node{n}))
	}
	return s
}

// share returns the shared node for n. After the call, no node below n may be changed.
func (s *sharing) share(n *Node) *Node {
	if s.one[n] == nil {
		s.enter(n)
	}
	return s.one[n]
}

// enter closes the nodes at and below n. It returns the index in path of the first node that n leads back to. If that is the index of n,
// the path from n on is a cycle, or n alone.
func (s *sharing) enter(n *Node) int {
	at := len(s.path)
	first := at
	s.path, s.entered[n] = append(s.path, n), at
	children(n, func(_ fieldpath.Element, child *Node) {
		if s.one[child] != nil {
			return
		}
		back, open := s.entered[child]
		if !open {
			back = s.enter(child)
		}
		first = min(first, back)
	})
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
func (s *sharing) close(members []*Node) {
	nodes := s.describe(members)
	if same := s.known[string(s.content)]; same != nil {
		for i, n := range nodes {
			s.one[n] = same[i]
		}
		return
	}
	s.know(nodes)
	for _, n := range nodes {
		s.adopt(n)
		// Members of a cycle are below each other, so a barrier below one is below all.
		n.unbarred, n.verbless = true, true
	}
	if slices.ContainsFunc(nodes, (*Node).hasVerbsBelow) {
		for _, n := range nodes {
			n.verbless = false
		}
	}
	if slices.ContainsFunc(nodes, (*Node).mayBarBelow) {
		for _, n := range nodes {
			n.unbarred = false
		}
	}
	var powers []Power
	for _, n := range nodes {
		powers = append(powers, n.powersBelow()...)
	}
	powers = ordered(powers)
	for _, n := range nodes {
		n.powers = powers
	}
}

// know stores nodes under the content that was described last.
func (s *sharing) know(nodes []*Node) {
	s.known[string(s.content)] = nodes
	for _, n := range nodes {
		s.one[n], s.numbers[n] = n, uint64(len(s.numbers))
	}
}

// sameButOrigins reports whether two trees are equal, whatever documents their permissions come from. Equal trees of a compile that is not
// traced are one node.
func sameButOrigins(a, b *Node) bool {
	one, two := &sharing{byEffect: true}, &sharing{byEffect: true}
	seen := map[[2]*Node]bool{}
	var same func(a, b *Node) bool
	same = func(a, b *Node) bool {
		if a == b || seen[[2]*Node{a, b}] {
			return true
		}
		seen[[2]*Node{a, b}] = true
		one.content, two.content = one.content[:0], two.content[:0]
		one.words(a)
		two.words(b)
		var names, theirs []fieldpath.Element
		var below, others []*Node
		children(a, func(e fieldpath.Element, n *Node) { names, below = append(names, e), append(below, n) })
		children(b, func(e fieldpath.Element, n *Node) { theirs, others = append(theirs, e), append(others, n) })
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

// adopt replaces the nodes below n by the shared ones.
func (s *sharing) adopt(n *Node) {
	if n.list != nil {
		n.list.item = s.one[n.list.item]
	}
	if n.mapping == nil {
		return
	}
	n.mapping.fields, n.mapping.keys = s.all(n.mapping.fields), s.all(n.mapping.keys)
	if n.mapping.value != nil {
		n.mapping.value = s.one[n.mapping.value]
	}
}

// all returns the shared nodes of named nodes, in a new map, because a map that is written to again may grow.
func (s *sharing) all(nodes map[string]*Node) map[string]*Node {
	if nodes == nil {
		return nil
	}
	out := make(map[string]*Node, len(nodes))
	for name, n := range nodes {
		out[name] = s.one[n]
	}
	return out
}

// describe writes the content of a cycle's members, or of one node. It returns them in the order in which the walk from the first meets
// them.
func (s *sharing) describe(members []*Node) []*Node {
	s.content = s.content[:0]
	nodes := append(make([]*Node, 0, len(members)), members[0])
	place := map[*Node]int{members[0]: 0}
	for i := 0; i < len(nodes); i++ {
		s.words(nodes[i])
		children(nodes[i], func(e fieldpath.Element, child *Node) {
			s.text(e.Name)
			if one := s.one[child]; one != nil {
				s.number(s.numbers[one] << 1)
				return
			}
			if _, met := place[child]; !met {
				place[child] = len(nodes)
				nodes = append(nodes, child)
			}
			s.number(uint64(place[child])<<1 | 1)
		})
	}
	return nodes
}

// words writes the own content of a node, and how many nodes are below it in each way.
func (s *sharing) words(n *Node) {
	s.flags(n.scalar, n.list != nil, n.mapping != nil, n.fallback != nil)
	s.text(string(n.role))
	if s.text(n.emits); n.written != nil {
		s.text(n.written.key)
	} else {
		s.text("")
	}
	s.text(string(n.fallback))
	s.guarding(n.permissions)
	s.number(uint64(len(n.trees)))
	for _, tree := range n.trees {
		s.guarding(tree)
	}
	if n.list != nil {
		s.flags(n.list.atomic)
		s.number(uint64(len(n.list.keys)))
		for _, k := range n.list.keys {
			s.text(k.Name)
			s.text(k.Emits)
			s.flags(k.Default != nil)
			s.text(string(k.Default))
		}
	}
	if n.mapping != nil {
		s.flags(n.mapping.atomic, n.mapping.value != nil, n.mapping.folds)
		s.number(uint64(len(n.mapping.fields)))
		s.number(uint64(len(n.mapping.keys)))
	}
}

// guarding writes permissions.
func (s *sharing) guarding(permissions []*Permission) {
	s.number(uint64(len(permissions)))
	for _, p := range permissions {
		if s.byEffect {
			s.text(p.effect)
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

// hasVerbsBelow computes verbless from the nodes directly below.
func (n *Node) hasVerbsBelow() bool {
	return hasChild(n, func(child *Node) bool { return !child.verbless || len(child.permissions) > 0 })
}

// mayBarBelow computes MayBarWithin from the nodes directly below.
func (n *Node) mayBarBelow() bool {
	return hasChild(n, (*Node).mayBar)
}

// mayBar reports whether the node, or one below it, may have a barrier.
func (n *Node) mayBar() bool {
	return n.MayBarWithin() || slices.ContainsFunc(n.permissions, (*Permission).MayBar)
}
