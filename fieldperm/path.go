package fieldperm

import (
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Path is a place in an object. It is rendered as text only on demand. The zero Path is the object itself. A Path is immutable: each
// method returns a new one.
type Path struct {
	last *step
}

type step struct {
	up *step
	stepKind
	// name is the name of a field or the key of an entry of a map.
	name string
	// index is the position in an atomic list.
	index int
	// keys identify an item of a list-map. For an item of a set they hold its value alone.
	keys []PathKey
}

type stepKind byte

const (
	stepField stepKind = iota
	stepKey
	stepIndex
	stepItem
	stepMember
)

// PathKey is one property that identifies an item of a list-map.
type PathKey struct {
	Name string
	// Value is JSON, nil if the item lacks the property. Callers must not change it.
	Value []byte
}

// Field returns the path of a named field of the object at p.
func (p Path) Field(name string) Path { return p.then(step{stepKind: stepField, name: name}) }

// Key returns the path of an entry of a map, or of a field that the schema does not know.
func (p Path) Key(name string) Path { return p.then(step{stepKind: stepKey, name: name}) }

// Index returns the path of a list item by its position, which starts at 0.
func (p Path) Index(i int) Path { return p.then(step{stepKind: stepIndex, index: i}) }

// Item returns the path of an item of a list-map.
func (p Path) Item(keys []PathKey) Path { return p.then(step{stepKind: stepItem, keys: keys}) }

// Member returns the path of an item of a set. The value is JSON. Callers must not change it.
func (p Path) Member(value []byte) Path {
	return p.then(step{stepKind: stepMember, keys: []PathKey{{Value: value}}})
}

func (p Path) then(s step) Path {
	s.up = p.last
	return Path{&s}
}

// isRoot reports whether p is the object itself.
func (p Path) isRoot() bool { return p.last == nil }

// Top returns the name of the top-level field that p is in, "" for the object itself.
func (p Path) Top() string {
	if p.isRoot() {
		return ""
	}
	s := p.last
	for s.up != nil {
		s = s.up
	}
	return s.name
}

// isStatus reports whether p is the status of the object.
func (p Path) isStatus() bool { return !p.isRoot() && p.last.up == nil && p.last.name == "status" }

// steps returns the path from the root on.
func (p Path) steps() []*step {
	n := 0
	for s := p.last; s != nil; s = s.up {
		n++
	}
	out := make([]*step, n)
	for s := p.last; s != nil; s = s.up {
		n--
		out[n] = s
	}
	return out
}

// String renders fields as .spec, keys of maps as ["a/b"], items of list-maps as [name="web"], items of sets as [="x"] and items of
// atomic lists as [0]. Every text that the author of an object chooses is quoted, so that no key can look like another path. The object
// itself is ".".
func (p Path) String() string {
	if p.isRoot() {
		return "."
	}
	var b strings.Builder
	for _, s := range p.steps() {
		switch s.stepKind {
		case stepField:
			b.WriteString("." + s.name)
		case stepKey:
			b.WriteString("[" + strconv.Quote(s.name) + "]")
		case stepIndex:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case stepMember:
			b.WriteString("[=" + s.keys[0].quote() + "]")
		case stepItem:
			b.WriteByte('[')
			for i, k := range s.keys {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(k.Name + "=" + k.quote())
			}
			b.WriteByte(']')
		}
	}
	return b.String()
}

// quote renders the value of a key. Containers are rendered as "…", because a path need not distinguish them.
func (k PathKey) quote() string {
	if k.Value == nil {
		return "null"
	}
	doc, err := rawjson.Scan(k.Value)
	if err != nil {
		return "…"
	}
	defer doc.Release()
	switch v := doc.Root(); v.Kind() {
	case rawjson.Null:
		return "null"
	case rawjson.String:
		return strconv.Quote(v.Text())
	case rawjson.Bool, rawjson.Number:
		return spell(v)
	case rawjson.Absent, rawjson.List, rawjson.Object:
	}
	return "…"
}
