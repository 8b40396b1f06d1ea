package compile

import (
	"testing"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// D8: versions of a definition without a webhook have the same owners if the same parts have owners, and items the same keys.
func TestD8_WhichVersionsHaveTheSameOwners(t *testing.T) {
	scalar := smd.Scalar("string")
	text := smd.Atom{Scalar: &scalar}
	list := func(of smd.ElementRelationship, keys ...string) smd.Atom {
		return smd.Atom{List: &smd.List{ElementType: smd.TypeRef{Inlined: text}, ElementRelationship: of, Keys: keys}}
	}
	object := func(of smd.ElementRelationship, values smd.Atom, fields map[string]smd.Atom) smd.Atom {
		m := &smd.Map{ElementRelationship: of, ElementType: smd.TypeRef{Inlined: values}}
		for name, field := range fields {
			m.Fields = append(m.Fields, smd.StructField{Name: name, Type: smd.TypeRef{Inlined: field}})
		}
		return smd.Atom{Map: m}
	}
	byK, byKV, none := list(smd.Associative, "k"), list(smd.Associative, "k", "v"), smd.Atom{}
	for name, c := range map[string]struct {
		one, other smd.Atom
		same       bool
	}{
		"equal":                         {byK, byK, true},
		"other keys":                    {byK, byKV, false},
		"a set and an atomic list":      {list(smd.Associative), list(smd.Atomic), false},
		"separable by default":          {object(smd.Separable, none, map[string]smd.Atom{"l": byK}), object("", none, map[string]smd.Atom{"l": byK}), true},
		"atomic in one":                 {object(smd.Separable, none, map[string]smd.Atom{"l": byK}), object(smd.Atomic, none, map[string]smd.Atom{"l": byK}), false},
		"a field that one has":          {object("", none, map[string]smd.Atom{"l": byK, "m": byK}), object("", none, map[string]smd.Atom{"l": byK}), true},
		"values of a map, and a field":  {object("", byK, nil), object("", none, map[string]smd.Atom{"l": byKV}), false},
		"values of a map, and the same": {object("", byK, nil), object("", none, map[string]smd.Atom{"l": byK}), true},
		"a list and a struct":           {byK, object("", none, map[string]smd.Atom{"l": byK}), false},
		"scalars of any type":           {text, smd.Atom{Scalar: new(smd.Scalar)}, true},
	} {
		for _, pair := range [][2]smd.Atom{{c.one, c.other}, {c.other, c.one}} {
			typeOf := func(a smd.Atom) schema.Type { return schema.NewType(&smd.Schema{}, smd.TypeRef{Inlined: a}) }
			if got := sameOwners(typeOf(pair[0]), typeOf(pair[1]), map[[2]schema.TypeID]bool{}); got != c.same {
				t.Errorf("%s: the owners are the same: %t, want %t", name, got, c.same)
			}
		}
	}
}
