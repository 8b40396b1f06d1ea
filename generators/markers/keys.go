package markers

import (
	"fmt"
	"go/token"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/markers/grammar"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/verbs"
)

// Value is one marker and its place.
type Value struct {
	grammar.Marker
	// Position is that of the marker's +.
	Position token.Position
	// ValuePosition is that of the value, with its quotes.
	ValuePosition token.Position
	// Same are further markers of the same key with the same value, as when it is written in both forms.
	Same []*Value
}

// schemaValue returns the value as it stands in a schema.
func (v *Value) schemaValue() any {
	if v.Key == grammar.Excluded {
		return true
	}
	return v.Value
}

// Keys are the markers of one type or field, each key once, in the order of grammar.Keys.
type Keys []*Value

// Get returns the marker of a key, nil if there is none.
func (k Keys) Get(key grammar.Key) *Value {
	for _, v := range k {
		if v.Key == key {
			return v
		}
	}
	return nil
}

// Permission returns the markers as an entry without a path.
func (k Keys) Permission() v1alpha1.FieldPermission {
	var p v1alpha1.FieldPermission
	for _, v := range k {
		switch v.Key {
		case grammar.Verb:
			p.Verb = v.Value
		case grammar.Source:
			p.ParameterSource = v.Value
		case grammar.By:
			p.ParameterizedBy = v.Value
		case grammar.Treatment:
			p.ParameterTreatment = v.Value
		case grammar.Expression:
			p.ParameterExpression = v.Value
		case grammar.Excluded:
			p.Excluded = true
		case grammar.When:
			p.ExcludedWhen = v.Value
		case grammar.Include:
			p.Include = v.Value
		}
	}
	return p
}

// exclusive are the keys of which a node has one at most. A field's key replaces both of its type.
var exclusive = [][]grammar.Key{{grammar.Treatment, grammar.Expression}, {grammar.Excluded, grammar.When}}

// Override combines the markers of a type with those of a field of the type, key by key, as package load combines keys in schemas. If two
// keys exclude each other, the field's key counts.
func Override(inner, outer Keys) Keys {
	out := slices.DeleteFunc(slices.Clone(inner), func(v *Value) bool {
		if outer.Get(v.Key) != nil {
			return true
		}
		for _, group := range exclusive {
			if slices.Contains(group, v.Key) && slices.ContainsFunc(group, func(key grammar.Key) bool { return outer.Get(key) != nil }) {
				return true
			}
		}
		return false
	})
	return append(out, outer...).sorted()
}

// Weakens returns the marker of a field by which the barrier of the field's type would hold for some values only, with the type's marker that it
// would replace; nil if there is none. A barrier above a type is not lifted in silence.
func Weakens(inner, outer Keys) (field, of *Value) {
	if always := inner.Get(grammar.Excluded); always != nil && outer.Get(grammar.Excluded) == nil {
		if when := outer.Get(grammar.When); when != nil {
			return when, always
		}
	}
	return nil, nil
}

// WeakensMessage is the message of an error at the field's marker.
func WeakensMessage(field, of *Value) string {
	return fmt.Sprintf("marker %q would replace %q of the type at %s, so that the barrier holds for some values only: remove one of the two", field.Key.Marker(), of.Key.Marker(), of.Position)
}

func (k Keys) sorted() Keys {
	order := grammar.Keys()
	slices.SortStableFunc(k, func(a, b *Value) int { return slices.Index(order, a.Key) - slices.Index(order, b.Key) })
	return k
}

// add adds a marker. A key that is there already must have the same value.
func (k *Keys) add(v *Value, errs *mistakes) {
	first := k.Get(v.Key)
	switch {
	case first == nil:
		*k = append(*k, v).sorted()
	case first.Value != v.Value:
		errs.at(v.Position, "marker %q has the value %q here and %q at %s: keep one of them", v.Key.Marker(), v.Value, first.Value, first.Position)
	default:
		first.Same = append(first.Same, v)
	}
}

// check checks a value without the schema that it is for.
func (v *Value) check(errs *mistakes) {
	switch v.Key {
	case grammar.Verb:
		if name, ok := strings.CutPrefix(v.Value, verbs.Prefix); ok {
			errs.at(v.ValuePosition, "marker %q: verb %q has the prefix of granted verbs: write %q", v.Key.Marker(), v.Value, name)
		} else if err := verbs.ValidateFieldVerb(v.Value); err != nil {
			errs.at(v.ValuePosition, "marker %q: %v", v.Key.Marker(), err)
		}
	case grammar.Treatment:
		treatments := []string{v1alpha1.TreatmentSlashDelimitedPrefix}
		switch near := spelling.Nearest(v.Value, treatments); {
		case v.Value == v1alpha1.TreatmentSlashDelimitedPrefix:
		case near != "":
			errs.at(v.ValuePosition, "marker %q: treatment %q is unknown: write %s", v.Key.Marker(), v.Value, near)
		default:
			errs.at(v.ValuePosition, "marker %q: treatment %q is unknown: use one of %s, or leave the marker out for the value as it is", v.Key.Marker(), v.Value, strings.Join(treatments, ", "))
		}
	case grammar.Include:
		switch near := spelling.Nearest(v.Value, load.Fragments()); {
		case slices.Contains(load.Fragments(), v.Value):
		case near != "":
			errs.at(v.ValuePosition, "marker %q: fragment %q is unknown: write %s", v.Key.Marker(), v.Value, near)
		default:
			errs.at(v.ValuePosition, "marker %q: fragment %q is unknown: use one of %s", v.Key.Marker(), v.Value, strings.Join(load.Fragments(), ", "))
		}
	default:
	}
}
