package owners

import (
	"slices"

	"golang.org/x/sync/semaphore"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// pathElement is a member of FieldsV1: a path element and the part below it.
type pathElement struct {
	name    rawjson.Name
	element smdpath.PathElement
	below   rawjson.Value
}

// inOrder appends FieldsV1 to out with the elements in the order in which API servers write them. It reports false if v is not FieldsV1.
// The library inserts each element at its position, so elements in another order take quadratic time.
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
		element, err := smdpath.DeserializePathElement(m.Name().String())
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

// mostWeight is the maximum weight, in bytes, of the paths in the changed entries of one request. It is more than a stored object can
// have. A short text may hold many paths of a thousand elements.
const mostWeight = 32 << 20

// A comparison of owners takes about ten times the memory that the paths weigh. A comparison that weighs more than lightWeight (bytes)
// waits for its share of mostMemory (bytes), which is for all comparisons of the process.
const lightWeight, mostMemory = 256 << 10, 16 << 20

var memory = semaphore.NewWeighted(mostMemory)

// elementWeight is the weight of each path element in bytes, without its name.
const elementWeight = 64

// weight returns the weight, in bytes, of the paths of some managers.
func (m *managedFields) weight(managers []manager) int {
	sum := 0
	for _, who := range managers {
		for _, i := range m.of[who] {
			sum += weigh(m.entries[i].raw, 0)
		}
	}
	return sum
}

// weigh returns the weight, in bytes, of the paths of FieldsV1 below a path that weighs above.
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
