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
// immutable: schema/compile makes each once, of NodeParts.
type Node struct {
	parts NodeParts
	made  bool
}

// NodeParts are what a node is made of. The methods of Node explain them.
type NodeParts struct {
	Scalar      bool
	List        *List
	Map         *Map
	Default     []byte
	Permissions []*Permission
	Trees       [][]*Permission
	Emits       string
	Role        Role
	Written     *Written
	// Unbarred means that no permission below the node can be a barrier. The zero value means that one may be.
	Unbarred bool
	// Verbless means that no node below has a permission. The zero value means that one may.
	Verbless bool
	// Powers are the powers of the fields below that the verbs of the node cover.
	Powers []Power
}

// NewNode makes a node.
func NewNode(p NodeParts) *Node { return &Node{p, true} }

// Make makes a node that others already point to, because it is a part of what is below it. A node is made once: a second call panics.
func (n *Node) Make(p NodeParts) {
	if n.made {
		panic("schema: a node does not change")
	}
	n.parts, n.made = p, true
}

// Parts returns a copy of what the node is made of. Callers must not change what it points to.
func (n *Node) Parts() NodeParts { return n.parts }

// List says how a list compares.
type List struct {
	atomic bool
	keys   []Key
	item   *Node
}

// NewList makes a list. keys are the properties that identify an item.
func NewList(atomic bool, keys []Key, item *Node) *List { return &List{atomic, keys, item} }

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
	parts MapParts
	// folded are the names of fields and keys, by folded name, "" for several that differ in case only. It is nil unless the map folds.
	folded map[string]string
}

// MapParts are what a map is made of.
type MapParts struct {
	Atomic bool
	Fields map[string]*Node
	Keys   map[string]*Node
	// Value is the node of all other keys, nil for a struct.
	Value *Node
	// Folds means that the API server does not know all fields. Programs that decode them may ignore the case of names.
	Folds bool
}

// NewMap makes a map.
func NewMap(p MapParts) *Map { return &Map{p, p.foldedNames()} }

// Parts returns what the map is made of. Callers must not change its maps.
func (m *Map) Parts() MapParts { return m.parts }

// unknown is the node of everything that the schema does not know (D6). It allows scalars, atomic lists, and maps that compare key by
// key.
var unknown = newUnknown()

func newUnknown() *Node {
	n := &Node{}
	n.Make(NodeParts{Scalar: true, Unbarred: true, Verbless: true, List: NewList(true, nil, n), Map: NewMap(MapParts{Value: n, Folds: true})})
	return n
}

// Unknown returns the node of everything that the schema does not know.
func Unknown() *Node { return unknown }

// AllowsScalar reports whether a string, number or boolean fits the node.
func (n *Node) AllowsScalar() bool { return n.parts.Scalar }

// List returns how a list at the node compares, nil if the node allows no list.
func (n *Node) List() *List { return n.parts.List }

// Map returns how an object at the node compares, nil if the node allows no object.
func (n *Node) Map() *Map { return n.parts.Map }

// Default returns the declared default as JSON, nil if there is none. Callers must not change it.
func (n *Node) Default() []byte { return n.parts.Default }

// Permissions returns the permissions that guard the node, from general to specific. It is empty if the node has no verb of its own. If a
// path names one key of a map whose values have a verb as well, that one comes first, and only bars (Permission.BarsOnly). Permissions of other trees (Trees) come last.
// Callers must not change the slice.
func (n *Node) Permissions() []*Permission { return n.parts.Permissions }

// Trees returns the permissions by tree, if a field of the kind becomes a part of other objects: first those of the kind, then those of
// each object. Each tree has a chain of its own, which begins with the verb of the root. The last one stands for all that are left out. It is
// nil if all trees have Permissions. Callers must not change the slices.
func (n *Node) Trees() [][]*Permission { return n.parts.Trees }

// MayBarWithin reports whether a permission below the node, without the node's own, can be a barrier. If so, a change of the whole must
// be searched for barriers. UncoveredPermissionSets are not counted.
func (n *Node) MayBarWithin() bool { return !n.parts.Unbarred }

// Emits returns the parameter name of the keys of this map or the value of this scalar, "" for none. Verbs at and below the node can use
// it.
func (n *Node) Emits() string { return n.parts.Emits }

// Role returns the node's role.
func (n *Node) Role() Role { return n.parts.Role }

// Atomic reports whether the list compares as a whole.
func (l *List) Atomic() bool { return l.atomic }

// Keys returns the properties that identify an item; none for a set. Callers must not change the slice.
func (l *List) Keys() []Key { return l.keys }

// Item returns the node of the items.
func (l *List) Item() *Node { return l.item }

// Atomic reports whether the object compares as a whole.
func (m *Map) Atomic() bool { return m.parts.Atomic }

// Names returns the named fields of a struct and the keys that a permission schema singles out, sorted.
func (m *Map) Names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(m.parts.Fields)), maps.Keys(m.parts.Keys))
	slices.Sort(names)
	return slices.Compact(names)
}

// Child returns the node below a key. If the schema does not know the key, it is the node of unknown fields. A key of the schema that
// ends in a slash applies to all keys that begin with it.
func (m *Map) Child(key string) *Node {
	if n, ok := m.parts.Fields[key]; ok {
		return n
	}
	if n, ok := m.parts.Keys[key]; ok {
		return n
	}
	if i := strings.IndexByte(key, '/'); i >= 0 && m.parts.Keys != nil {
		if n, ok := m.parts.Keys[key[:i+1]]; ok {
			return n
		}
	}
	if m.parts.Value != nil {
		return m.parts.Value
	}
	return unknown
}

// Step returns the node one step further. It is nil if the schema declares none, which is what API servers prune, and the node of unknown fields if
// they keep it.
func (n *Node) Step(e fieldpath.Element) *Node {
	switch m := n.Map(); {
	case e.Any && n.List() != nil:
		return n.List().item
	case m == nil:
		return nil
	case e.Any:
		return m.parts.Value
	case m.parts.Fields[e.Name] == nil && m.parts.Keys[e.Name] == nil && m.parts.Value == nil:
		return nil
	default:
		return m.Child(e.Name)
	}
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
func (n *Node) Folds() bool {
	return n.parts.Map != nil && n.parts.Map.parts.Folds && !n.parts.Verbless
}

// Respells reports whether the node folds and, of the names of an object, one differs from another or from a name of the schema in case only.
// Then nobody knows which value a program reads.
func (n *Node) Respells(names iter.Seq[string]) bool {
	if !n.Folds() {
		return false
	}
	m := n.parts.Map
	seen := map[string]bool{}
	for name := range names {
		folded := FoldName(name)
		if seen[folded] || m.respells(name, folded) {
			return true
		}
		seen[folded] = true
		if prefix, has := KeyPrefix(name); has && m.respells(prefix, FoldName(prefix)) {
			return true
		}
	}
	return false
}

// KeyPrefix returns the prefix of a key with its slash, and false if the key has none or is one.
func KeyPrefix(name string) (string, bool) {
	i := strings.IndexByte(name, '/')
	return name[:i+1], i >= 0 && i < len(name)-1
}

func (m *Map) respells(name, folded string) bool {
	known, has := m.folded[folded]
	return has && known != name
}

// foldedNames returns the value of folded for a map.
func (m MapParts) foldedNames() map[string]string {
	if !m.Folds {
		return nil
	}
	out := make(map[string]string, len(m.Fields)+len(m.Keys))
	for _, names := range []map[string]*Node{m.Fields, m.Keys} {
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
	_, ok := m.parts.Fields[key]
	return ok
}

// Lookup returns the results of Child and IsField for a key given as bytes. It allocates nothing and does not keep the bytes, so the
// caller may reuse them. A nil Map knows no key.
func (m *Map) Lookup(key []byte) (child *Node, field bool) {
	if m == nil {
		return unknown, false
	}
	// The Go compiler does not allocate for a conversion inside a map lookup.
	if n, ok := m.parts.Fields[string(key)]; ok {
		return n, true
	}
	if n, ok := m.parts.Keys[string(key)]; ok {
		return n, false
	}
	if i := bytes.IndexByte(key, '/'); i >= 0 && m.parts.Keys != nil {
		if n, ok := m.parts.Keys[string(key[:i+1])]; ok {
			return n, false
		}
	}
	if m.parts.Value != nil {
		return m.parts.Value, false
	}
	return unknown, false
}
