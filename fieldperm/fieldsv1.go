package fieldperm

import (
	"slices"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// pathElement is a member of FieldsV1: an element of a path, and what is below it.
type pathElement struct {
	name    rawjson.Name
	element fieldpath.PathElement
	below   rawjson.Value
}

// inOrder appends FieldsV1 with its elements in the order in which API servers write them, and reports
// false if one is none. The library inserts each element where it belongs, and takes the square of the time
// for those that come in another order.
func inOrder(out []byte, v rawjson.Value) ([]byte, bool) {
	if !v.IsObject() {
		return out, false
	}
	var elements []pathElement
	own := false
	for m := v.Members(); m.Next(); {
		if m.Name().Is(".") {
			if own || !m.Value().IsObject() || !m.Value().IsEmpty() {
				return out, false
			}
			own = true
			continue
		}
		element, err := fieldpath.DeserializePathElement(m.Name().String())
		if err != nil {
			return out, false
		}
		elements = append(elements, pathElement{m.Name(), element, m.Value()})
	}
	compare := func(a, b pathElement) int { return a.element.Compare(b.element) }
	if !slices.IsSortedFunc(elements, compare) {
		slices.SortFunc(elements, compare)
	}
	out = append(out, '{')
	if own {
		out = append(out, `".":{}`...)
	}
	for i := range elements {
		if own || i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), elements[i].name.Raw()...), `":`...)
		var ok bool
		if out, ok = inOrder(out, elements[i].below); !ok {
			return out, false
		}
	}
	return append(out, '}'), true
}

// mostWeight is how much may be written out of paths that one request changes the owners of, in bytes: more than objects have
// that an API server stores. A short text may have many paths of a thousand elements.
const mostWeight = 32 << 20

// To compare owners takes about ten times the memory that their paths weigh. So what weighs more than lightWeight waits for room
// in ownersAtOnce, which all comparisons of the process share.
const lightWeight, ownersAtOnce = 256 << 10, 16 << 20

var ownersRoom = semaphore.NewWeighted(ownersAtOnce)

// elementWeight is what each element of a path weighs beside its name.
const elementWeight = 64

// weight returns what the paths of some managers weigh.
func (m *managedFields) weight(managers []manager) int {
	sum := 0
	for _, who := range managers {
		for _, i := range m.of[who] {
			sum += weigh(m.entries[i].raw, 0)
		}
	}
	return sum
}

// weigh returns what the paths of FieldsV1 weigh that stands below a path of some weight.
func weigh(v rawjson.Value, above int) int {
	sum := 0
	for m := v.Members(); m.Next(); {
		name := m.Name()
		if name.Is(".") {
			sum += above
			continue
		}
		own := above + elementWeight + len(name.Bytes())
		if m.Value().IsEmpty() {
			sum += own
		} else {
			sum += weigh(m.Value(), own)
		}
		if sum > mostWeight {
			break
		}
	}
	return sum
}
