package fieldperm

import (
	"slices"

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
