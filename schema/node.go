package schema

import (
	"bytes"
	"slices"
	"strings"
)

// Role marks what the API server itself writes. Only the built-in catalogue gives roles: whoever
// could give one could free a field from every check.
type Role string

const (
	// RoleNone is an ordinary field.
	RoleNone Role = ""
	// RoleServerWritten is never charged (D7).
	RoleServerWritten Role = "serverWritten"
	// RoleIdentity is not charged on CREATE (C5), and an ordinary field on UPDATE (D9).
	RoleIdentity Role = "identity"
	// RoleOwnership is metadata.managedFields, compared by owners and paths (D8).
	RoleOwnership Role = "ownership"
)

// Node is one place in a kind's compiled tree. A value that fits the node is null or one of the
// forms that it allows; a node may allow several (int-or-string, unknown fields). The graph of nodes
// has cycles where the schema is recursive. Nodes are immutable.
type Node struct {
	scalar      bool
	list        *List
	mapping     *Map
	fallback    []byte
	permissions []*Permission
	// trees are the permissions by the tree that they are of: that of the kind, then those of the objects that a field of the kind becomes
	// a part of. It is nil where there is one tree, or all of them have the same node.
	trees [][]*Permission
	emits string
	role  Role
	// unbarred is that no permission below the node may bar. The zero value says that one may.
	unbarred bool
	// united is that no permission below the node stands apart. The zero value says that one may.
	united bool
	// powers are those of what the verbs of the node cover below it.
	powers  []Power
	written *Written
}

// List is how a list compares.
type List struct {
	atomic bool
	keys   []Key
	item   *Node
}

// Key is one of the properties that identify an item of a list-map.
type Key struct {
	// Name of the property.
	Name string
	// Default is JSON that stands in for an absent property; nil if there is none.
	Default []byte
	// Emits is the name under which the property's value is a parameter, "" for none.
	Emits string
}

// Map is how an object compares: named fields, and values for all other keys. A permission schema
// may single out keys of a map; they compare as its other values do.
type Map struct {
	atomic bool
	fields map[string]*Node
	keys   map[string]*Node
	value  *Node
}

// unknown is the node of everything that the schema does not know (D6): scalars, atomic lists, and
// maps that compare key by key.
var unknown = newUnknown()

// plain is the node of every scalar of which there is nothing more to say.
var plain = &Node{scalar: true, unbarred: true, united: true}

func newUnknown() *Node {
	n := &Node{scalar: true, unbarred: true, united: true}
	n.list = &List{atomic: true, item: n}
	n.mapping = &Map{value: n}
	return n
}

// AllowsScalar reports whether a string, number or boolean fits the node.
func (n *Node) AllowsScalar() bool { return n.scalar }

// List returns how a list at the node compares, nil if no list fits.
func (n *Node) List() *List { return n.list }

// Map returns how an object at the node compares, nil if no object fits.
func (n *Node) Map() *Map { return n.mapping }

// Default returns the declared default as JSON, nil if there is none. It must not be changed.
func (n *Node) Default() []byte { return n.fallback }

// Permissions returns what guards the node, from general to specific: nothing if the node has no verb
// of its own, two where a path names one key of a map whose values have a verb as well. What other trees (Trees) add
// comes last. The slice must not be changed.
func (n *Node) Permissions() []*Permission { return n.permissions }

// Trees returns the permissions by the tree that they are of, where a field of the kind becomes a part of other objects: that of
// the kind, then those of the objects. Each tree has a chain of its own, which begins with the verb of the
// root. It is nil where there is one tree, or all of them have Permissions. The slices must not be changed.
func (n *Node) Trees() [][]*Permission { return n.trees }

// MayBarWithin reports whether a permission below the node, the node's own not counted, may be a barrier,
// so that a change of the whole has to be searched for barriers. UncoveredPermissionSets are not counted.
func (n *Node) MayBarWithin() bool { return !n.unbarred }

// MayStandApartWithin reports whether a permission below the node, the node's own not counted, stands apart, so that
// what covers a change of the whole does not cover what it guards.
func (n *Node) MayStandApartWithin() bool { return !n.united }

// StandsApart reports whether a permission of the node itself stands apart.
func (n *Node) StandsApart() bool { return slices.ContainsFunc(n.permissions, (*Permission).Apart) }

// Emits returns the parameter's name under which the keys of this map or the value of this scalar
// are known below and at the node, "" for none.
func (n *Node) Emits() string { return n.emits }

// Role returns the node's role.
func (n *Node) Role() Role { return n.role }

// Atomic reports whether the list compares as a whole.
func (l *List) Atomic() bool { return l.atomic }

// Keys returns the properties that identify an item; none for a set. The slice must not be changed.
func (l *List) Keys() []Key { return l.keys }

// Item returns the node of the items.
func (l *List) Item() *Node { return l.item }

// Atomic reports whether the object compares as a whole.
func (m *Map) Atomic() bool { return m.atomic }

// Child returns the node below a key, which is the node of unknown fields if the schema has none. A key of the schema
// that ends in a slash stands for all keys that begin with it.
func (m *Map) Child(key string) *Node {
	if n, ok := m.fields[key]; ok {
		return n
	}
	if n, ok := m.keys[key]; ok {
		return n
	}
	if i := strings.IndexByte(key, '/'); i >= 0 && m.keys != nil {
		if n, ok := m.keys[key[:i+1]]; ok {
			return n
		}
	}
	if m.value != nil {
		return m.value
	}
	return unknown
}

// IsField reports whether the key is a named field of a struct, rather than the key of a map's entry.
func (m *Map) IsField(key string) bool {
	_, ok := m.fields[key]
	return ok
}

// Lookup is Child and IsField in one, for a key whose bytes are the caller's to change: it allocates
// nothing and keeps nothing. A nil Map knows no key.
func (m *Map) Lookup(key []byte) (child *Node, field bool) {
	if m == nil {
		return unknown, false
	}
	// The compiler looks a converted key up in place.
	if n, ok := m.fields[string(key)]; ok {
		return n, true
	}
	if n, ok := m.keys[string(key)]; ok {
		return n, false
	}
	if i := bytes.IndexByte(key, '/'); i >= 0 && m.keys != nil {
		if n, ok := m.keys[string(key[:i+1])]; ok {
			return n, false
		}
	}
	if m.value != nil {
		return m.value, false
	}
	return unknown, false
}

// walk visits every node reachable from n once, with a pattern that leads to it.
func walk(n *Node, p Pattern, seen map[*Node]bool, visit func(Pattern, *Node)) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	visit(p, n)
	if n.list != nil {
		walk(n.list.item, p.child(element{any: true}), seen, visit)
	}
	if n.mapping != nil {
		for _, name := range sortedKeys(n.mapping.fields) {
			walk(n.mapping.fields[name], p.child(element{name: name}), seen, visit)
		}
		for _, name := range sortedKeys(n.mapping.keys) {
			walk(n.mapping.keys[name], p.child(element{name: name}), seen, visit)
		}
		walk(n.mapping.value, p.child(element{any: true}), seen, visit)
	}
}
