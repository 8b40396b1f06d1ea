package fieldperm

import (
	"strconv"
	"strings"
)

// Path is a place in an object, rendered only when somebody wants to read it. The zero Path is the
// object itself.
type Path struct {
	last *step
}

type step struct {
	up *step
	stepKind
	// name of a field or the key of a map's entry.
	name string
	// index in an atomic list.
	index int
	// keys and values that identify an item of a list-map; for an item of a set the value alone.
	keys []itemKey
}

type stepKind byte

const (
	stepField stepKind = iota
	stepKey
	stepIndex
	stepItem
	stepMember
)

type itemKey struct {
	name  string
	value *value
}

func (p Path) then(s step) Path {
	s.up = p.last
	return Path{&s}
}

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

// String renders fields as .spec, keys of maps as ["a/b"], items of list-maps as [name="web"], items
// of sets as [="x"] and items of atomic lists as [0]. Whatever an object's author chooses is quoted,
// so that no key can look like another path. The object itself is ".".
func (p Path) String() string {
	if p.last == nil {
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
			b.WriteString("[=" + s.keys[0].value.quote() + "]")
		case stepItem:
			b.WriteByte('[')
			for i, k := range s.keys {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(k.name + "=" + k.value.quote())
			}
			b.WriteByte(']')
		}
	}
	return b.String()
}

// quote renders a key's value; containers cannot be told apart in a path and need not be.
func (v *value) quote() string {
	switch {
	case v == nil || v.kind == kindNull:
		return "null"
	case v.kind == kindString:
		return strconv.Quote(v.text)
	case v.isScalar():
		return v.spell()
	default:
		return "…"
	}
}
