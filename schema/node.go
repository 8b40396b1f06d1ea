package schema

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Role marks fields that the API server itself writes. Only the built-in catalogue may give roles, because a role can free a field from
// every check.
type Role string

const (
	// RoleNone is an ordinary field.
	RoleNone Role = ""
	// RoleServerWritten is never charged (D7). Only the built-in catalogue can give it.
	RoleServerWritten Role = "serverWritten"
	// RoleIdentity is not charged on CREATE (C5), and an ordinary field on UPDATE (D9).
	RoleIdentity Role = "identity"
	// RoleOwnership is metadata.managedFields, compared by owners and paths (D8).
	RoleOwnership Role = "ownership"
)

// Node is one place in the compiled tree of a kind. A value fits the node if it is null or has one of the forms that the node allows. A
// node may allow several forms (int-or-string, unknown fields). The graph of nodes has cycles if the schema is recursive. Nodes are
// immutable.
type Node struct {
	scalar      bool
	list        *List
	mapping     *Map
	fallback    []byte
	permissions []*Permission
	// trees are the permissions by tree: first the tree of the kind, then the trees of the objects that a field of the kind becomes a
	// part of. It is nil if there is one tree, or if all trees have the same node here. The last one stands for all that are left out.
	trees [][]*Permission
	emits string
	role  Role
	// unbarred means that no permission below the node can be a barrier. The zero value means that one may be.
	unbarred bool
	// verbless means that no node below has a permission. The zero value means that one may.
	verbless bool
	// powers are the powers of the fields below that the verbs of the node cover.
	powers  []Power
	written *Written
}

// List says how a list compares.
type List struct {
	atomic bool
	keys   []Key
	item   *Node
}

// Key is one property that identifies an item of a list-map.
type Key struct {
	// Name is the name of the property.
	Name string
	// Default is the JSON value of an absent property; nil if there is none.
	Default []byte
	// Emits is the parameter name under which verbs can use the property's value, "" for none.
	Emits string
}

// Map says how an object compares: it has named fields, and values for all other keys. A permission schema may single out keys of a map;
// they compare like its other values.
type Map struct {
	atomic bool
	fields map[string]*Node
	keys   map[string]*Node
	value  *Node
	// folds means that the API server does not know all fields. Programs that decode them may ignore the case of names.
	folds bool
	// folded are the names of fields and keys, by folded name, "" for several that differ in case only. It is nil unless the map folds.
	folded map[string]string
}

// unknown is the node of everything that the schema does not know (D6). It allows scalars, atomic lists, and maps that compare key by
// key.
var unknown = newUnknown()

// plain is the node of every scalar without permissions or other properties.
var plain = &Node{scalar: true, unbarred: true, verbless: true}

func newUnknown() *Node {
	n := &Node{scalar: true, unbarred: true, verbless: true}
	n.list = &List{atomic: true, item: n}
	n.mapping = &Map{value: n, folds: true}
	return n
}

// Unknown returns the node of everything that the schema does not know.
func Unknown() *Node { return unknown }

// AllowsScalar reports whether a string, number or boolean fits the node.
func (n *Node) AllowsScalar() bool { return n.scalar }

// List returns how a list at the node compares, nil if the node allows no list.
func (n *Node) List() *List { return n.list }

// Map returns how an object at the node compares, nil if the node allows no object.
func (n *Node) Map() *Map { return n.mapping }

// Default returns the declared default as JSON, nil if there is none. Callers must not change it.
func (n *Node) Default() []byte { return n.fallback }

// Permissions returns the permissions that guard the node, from general to specific. It is empty if the node has no verb of its own. If a
// path names one key of a map whose values have a verb as well, that one comes first, and only bars (Permission.BarsOnly). Permissions of other trees (Trees) come last.
// Callers must not change the slice.
func (n *Node) Permissions() []*Permission { return n.permissions }

// Trees returns the permissions by tree, if a field of the kind becomes a part of other objects: first those of the kind, then those of
// each object. Each tree has a chain of its own, which begins with the verb of the root. The last one stands for all that are left out. It is
// nil if all trees have Permissions. Callers must not change the slices.
func (n *Node) Trees() [][]*Permission { return n.trees }

// MayBarWithin reports whether a permission below the node, without the node's own, can be a barrier. If so, a change of the whole must
// be searched for barriers. UncoveredPermissionSets are not counted.
func (n *Node) MayBarWithin() bool { return !n.unbarred }

// Emits returns the parameter name of the keys of this map or the value of this scalar, "" for none. Verbs at and below the node can use
// it.
func (n *Node) Emits() string { return n.emits }

// Role returns the node's role.
func (n *Node) Role() Role { return n.role }

// Atomic reports whether the list compares as a whole.
func (l *List) Atomic() bool { return l.atomic }

// Keys returns the properties that identify an item; none for a set. Callers must not change the slice.
func (l *List) Keys() []Key { return l.keys }

// Item returns the node of the items.
func (l *List) Item() *Node { return l.item }

// Atomic reports whether the object compares as a whole.
func (m *Map) Atomic() bool { return m.atomic }

// Values returns the node of the values of keys without a node of their own, nil for a struct.
func (m *Map) Values() *Node { return m.value }

// Names returns the named fields of a struct and the keys that a permission schema singles out, sorted.
func (m *Map) Names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(m.fields)), maps.Keys(m.keys))
	slices.Sort(names)
	return slices.Compact(names)
}

// Child returns the node below a key. If the schema does not know the key, it is the node of unknown fields. A key of the schema that
// ends in a slash applies to all keys that begin with it.
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

// FoldName returns a text that is the same for the spellings of a name that differ in case only, as strings.EqualFold compares them.
func FoldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// Folds reports whether programs that decode an object at the node may ignore the case of its names, and a node below has a verb.
func (n *Node) Folds() bool { return n.mapping != nil && n.mapping.folds && !n.verbless }

// Respells reports whether the node folds and, of the names of an object, one differs from another or from a name of the schema in case only.
// Then nobody knows which value a program reads.
func (n *Node) Respells(names iter.Seq[string]) bool {
	if !n.Folds() {
		return false
	}
	m := n.mapping
	seen := map[string]bool{}
	for name := range names {
		folded := FoldName(name)
		if seen[folded] || m.respells(name, folded) {
			return true
		}
		seen[folded] = true
		if prefix, has := prefixIn(name); has && m.respells(prefix, FoldName(prefix)) {
			return true
		}
	}
	return false
}

func (m *Map) respells(name, folded string) bool {
	known, has := m.folded[folded]
	return has && known != name
}

// foldedNames returns the value of folded for a map.
func (m *Map) foldedNames() map[string]string {
	if !m.folds {
		return nil
	}
	out := make(map[string]string, len(m.fields)+len(m.keys))
	for _, names := range []map[string]*Node{m.fields, m.keys} {
		for name := range names {
			if folded := FoldName(name); out[folded] == "" {
				if _, several := out[folded]; !several {
					out[folded] = name
				}
			} else {
				out[folded] = ""
			}
		}
	}
	return out
}

// IsField reports whether the key is a named field of a struct and not the key of an entry of a map.
func (m *Map) IsField(key string) bool {
	_, ok := m.fields[key]
	return ok
}

// Lookup returns the results of Child and IsField for a key given as bytes. It allocates nothing and does not keep the bytes, so the
// caller may reuse them. A nil Map knows no key.
func (m *Map) Lookup(key []byte) (child *Node, field bool) {
	if m == nil {
		return unknown, false
	}
	// The Go compiler does not allocate for a conversion inside a map lookup.
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

// Children returns the nodes directly below a node with the steps to them: the items of a list, then fields and singled-out keys of an
// object by name, then its other values. Below a node of unknown fields there are none.
func (n *Node) Children() iter.Seq2[fieldpath.Element, *Node] {
	return func(yield func(fieldpath.Element, *Node) bool) {
		done := false
		children(n, func(e fieldpath.Element, child *Node) {
			done = done || child != unknown && !yield(e, child)
		})
	}
}

// walk visits every node reachable from n once, with a pattern that leads to it.
func walk(n *Node, p fieldpath.Pattern, seen map[*Node]bool, visit func(fieldpath.Pattern, *Node)) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	visit(p, n)
	children(n, func(e fieldpath.Element, child *Node) {
		if !seen[child] {
			walk(child, p.Child(e), seen, visit)
		}
	})
}

// each visits the nodes that walk visits, in the same order, without their patterns, which need an allocation for each step.
func each(n *Node, seen map[*Node]bool, visit func(*Node)) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	visit(n)
	children(n, func(_ fieldpath.Element, child *Node) { each(child, seen, visit) })
}
