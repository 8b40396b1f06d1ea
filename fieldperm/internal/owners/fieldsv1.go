package owners

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/semaphore"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// readFields returns the paths of FieldsV1. It reports false for a text that the library would write in another way: the library ignores
// elements of kinds that it does not know, so what such a text says cannot be compared.
func readFields(fields rawjson.Value) (*smdpath.Set, bool) {
	if fields.IsAbsent() {
		return nothing, true
	}
	set := smdpath.NewSet()
	if weigh(fields, 0) > mostWeight || set.FromJSON(bytes.NewReader(fields.Raw())) != nil {
		return nothing, false
	}
	written, err := set.ToJSON()
	if err != nil {
		return nothing, false
	}
	doc, err := rawjson.Scan(written)
	if err != nil {
		return nothing, false
	}
	defer doc.Release()
	var c rawjson.Comparison
	return set, c.Equal(fields, doc.Root())
}

// fieldsAt follows a path in FieldsV1 without reading the rest. It ends where nothing more is owned, and at a position, because managers own
// items by their keys. whole reports whether it followed the whole path. It may miss a key or a value whose JSON has several spellings.
func fieldsAt(fields rawjson.Value, p fieldpath.Path) (part rawjson.Value, whole bool) {
	if p.IsRoot() {
		return fields, true
	}
	up, step := p.Cut()
	if part, whole = fieldsAt(fields, up); !whole || step.Kind == fieldpath.StepIndex || part.IsEmpty() {
		return part, false
	}
	return part.Get(element(&step)), true
}

// element returns the name of a step in FieldsV1.
func element(s *fieldpath.Step) string {
	switch s.Kind {
	case fieldpath.StepItem:
		var keys []string
		for _, key := range s.Keys {
			if key.Value != nil {
				keys = append(keys, strconv.Quote(key.Name)+":"+string(key.Value))
			}
		}
		slices.Sort(keys)
		return "k:{" + strings.Join(keys, ",") + "}"
	case fieldpath.StepMember:
		return "v:" + string(s.Keys[0].Value)
	default:
		return "f:" + s.Name
	}
}

// paths returns the paths of a set, those of a level before those below it. A path is valid until the next one. The library's iterator goes
// on after a break.
func paths(set *smdpath.Set) iter.Seq[smdpath.Path] {
	return func(yield func(smdpath.Path) bool) {
		goes := true
		set.Iterate(func(p smdpath.Path) { goes = goes && yield(p) })
	}
}

// under returns the paths of a set that begin with a path, without it. Callers must not change the result.
func under(set *smdpath.Set, p ...smdpath.PathElement) *smdpath.Set {
	for _, e := range p {
		below, is := set.Children.Get(e)
		if !is {
			return nothing
		}
		set = below
	}
	return set
}

var nothing = smdpath.NewSet()

// union returns the union of the sets. It halves the list, because one union costs as much as the larger of its two sets.
func union(sets []*smdpath.Set) *smdpath.Set {
	switch n := len(sets); n {
	case 0:
		return nothing
	case 1:
		return sets[0]
	default:
		return union(sets[:n/2]).Union(union(sets[n/2:]))
	}
}

// mostWeight is the maximum weight, in bytes, of the paths in the changed entries of one request. It is more than a stored object can
// have. A short text may hold many paths of a thousand elements.
const mostWeight = 32 << 20

// A comparison of owners takes several times the memory that the paths weigh. A comparison that weighs more than lightWeight (bytes)
// waits for its share of mostMemory (bytes), which is for all comparisons of the process.
const lightWeight, mostMemory = 256 << 10, 16 << 20

var memory = semaphore.NewWeighted(mostMemory)

// elementWeight is the weight of each path element in bytes, without its name.
const elementWeight = 64

// weigh returns the weight, in bytes, of the paths of FieldsV1 below a path that weighs above. The library takes time with the square of the
// elements of a level that are not in its order, so a level weighs a sixteenth of that square as well.
func weigh(v rawjson.Value, above int) int {
	sum, elements := 0, 0
	for m := v.Members(); m.Next() && sum <= mostWeight; elements++ {
		switch name := m.Name(); {
		case name.Is("."):
			sum += above
		case m.Value().IsEmpty():
			sum += above + elementWeight + len(name.Bytes())
		default:
			sum += weigh(m.Value(), above+elementWeight+len(name.Bytes()))
		}
	}
	return sum + elements*elements/16
}
