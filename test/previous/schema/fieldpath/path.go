package fieldpath

import (
	"strconv"

	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
)

// Path is a place in an object. It is rendered as text only on demand. The zero Path is the object itself. A Path is immutable: each
// method returns a new one.
type Path struct {
	last *node
}

// node is a step with the steps before it. A walk makes one for each place, so it is as small as most steps allow.
type node struct {
	up   *node
	name string
	// keys are nil except for items.
	keys  *[]Key
	index uint32
	kind  StepKind
}

// step returns the step of a node.
func (n *node) step() Step {
	s := Step{Kind: n.kind, Name: n.name, Index: int(n.index)}
	if n.keys != nil {
		s.Keys = *n.keys
	}
	return s
}

// Step is one step of a path.
type Step struct {
	Kind StepKind
	// Name is the name of a field or the key of an entry of a map.
	Name string
	// Index is the position in an atomic list.
	Index int
	// Keys identify an item of a list-map. For an item of a set they hold its value alone. Callers must not change them.
	Keys []Key
}

// StepKind says where a step leads.
type StepKind byte

// These are the kinds of steps.
const (
	// StepField leads to a named field.
	StepField StepKind = iota
	// StepKey leads to an entry of a map, or to a field that the schema does not know.
	StepKey
	// StepIndex leads to an item of an atomic list.
	StepIndex
	// StepItem leads to an item of a list-map.
	StepItem
	// StepMember leads to an item of a set.
	StepMember
)

// Key is one property that identifies an item of a list-map.
type Key struct {
	Name string
	// Value is JSON, nil if the item lacks the property. Callers must not change it.
	Value []byte
}

// Field returns the path of a named field of the object at p.
func (p Path) Field(name string) Path { return Path{&node{up: p.last, kind: StepField, name: name}} }

// Key returns the path of an entry of a map, or of a field that the schema does not know.
func (p Path) Key(name string) Path { return Path{&node{up: p.last, kind: StepKey, name: name}} }

// Index returns the path of a list item by its position, which starts at 0.
func (p Path) Index(i int) Path {
	return Path{&node{up: p.last, kind: StepIndex, index: uint32(i)}} //nolint:gosec // A list has fewer items than 4 GiB of text.
}

// Item returns the path of an item of a list-map.
func (p Path) Item(keys []Key) Path { return Path{&node{up: p.last, kind: StepItem, keys: &keys}} }

// Member returns the path of an item of a set. The value is JSON. Callers must not change it.
func (p Path) Member(value []byte) Path {
	return Path{&node{up: p.last, kind: StepMember, keys: &[]Key{{Value: value}}}}
}

// IsRoot reports whether p is the object itself.
func (p Path) IsRoot() bool { return p.last == nil }

// Top returns the name of the top-level field that p is in, "" for the object itself.
func (p Path) Top() string {
	if p.IsRoot() {
		return ""
	}
	s := p.last
	for s.up != nil {
		s = s.up
	}
	return s.name
}

// IsTop reports whether p is the top-level field of this name.
func (p Path) IsTop(name string) bool { return !p.IsRoot() && p.last.up == nil && p.last.name == name }

// Cut returns the path without its last step, and that step. p must not be the object itself.
func (p Path) Cut() (Path, Step) { return Path{p.last.up}, p.last.step() }

// Steps returns the steps from the object on.
func (p Path) Steps() []Step {
	n := 0
	for s := p.last; s != nil; s = s.up {
		n++
	}
	out := make([]Step, n)
	for s := p.last; s != nil; s = s.up {
		n--
		out[n] = s.step()
	}
	return out
}

// String renders fields as .spec, keys of maps as ["a/b"], items of list-maps as [name="web"], items of sets as [="x"] and items of
// atomic lists as [0]. Every text that the author of an object chooses is quoted, so that no key can look like another path. The object
// itself is ".".
func (p Path) String() string { return string(p.Append(nil)) }

// Append appends the text of String.
func (p Path) Append(out []byte) []byte {
	if p.IsRoot() {
		return append(out, '.')
	}
	return p.last.append(out)
}

func (n *node) append(out []byte) []byte {
	if n.up != nil {
		out = n.up.append(out)
	}
	return n.appendStep(out)
}

func (n *node) appendStep(out []byte) []byte {
	switch n.kind {
	case StepField:
		return append(append(out, '.'), n.name...)
	case StepKey:
		return append(strconv.AppendQuote(append(out, '['), n.name), ']')
	case StepIndex:
		return append(strconv.AppendUint(append(out, '['), uint64(n.index), 10), ']')
	case StepMember:
		return append((*n.keys)[0].append(append(out, "[="...)), ']')
	case StepItem:
		out = append(out, '[')
		for i, k := range *n.keys {
			if i > 0 {
				out = append(out, ',')
			}
			out = k.append(append(append(out, k.Name...), '='))
		}
		return append(out, ']')
	}
	return out
}

// append renders the value of a key. Containers are rendered as "…", because a path need not distinguish them.
func (k Key) append(out []byte) []byte {
	if k.Value == nil {
		return append(out, "null"...)
	}
	doc, err := rawjson.Scan(k.Value)
	if err != nil {
		return append(out, "…"...)
	}
	defer doc.Release()
	switch v := doc.Root(); v.Kind() {
	case rawjson.Null:
		return append(out, "null"...)
	case rawjson.String:
		return strconv.AppendQuote(out, v.Text())
	case rawjson.Bool, rawjson.Number:
		return append(out, v.ScalarText()...)
	case rawjson.Absent, rawjson.List, rawjson.Object:
	}
	return append(out, "…"...)
}
