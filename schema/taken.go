package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Taken is a verb that no longer covers a field.
type Taken struct {
	// Path is the first such field.
	Path fieldpath.Pattern
	Verb verbs.Verb
	// Parameterized means that the verb had a parameter there, so all verbs of its name are meant.
	Parameterized bool
}

// Is reports whether a verb, as written in a role, is the verb that was taken.
func (t Taken) Is(verb string) bool {
	v, err := verbs.Parse(verb)
	if err != nil {
		return false
	}
	return v == t.Verb || t.Parameterized && v.WithoutParameter() == t.Verb
}

// TakenFrom returns the verbs that cover a field of a kind in the schema before and not in the schema after, in the order of the fields.
func TakenFrom(kind runtimeschema.GroupKind, before, after *Schema) []Taken {
	had, has := verbsOf(kind, before), verbsOf(kind, after)
	var out []Taken
	for _, at := range sortedKeys(had) {
		for _, t := range had[at] {
			same := func(u Taken) bool { return u.Verb == t.Verb && u.Parameterized == t.Parameterized }
			if !slices.ContainsFunc(has[at], same) && !slices.ContainsFunc(out, same) {
				out = append(out, t)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Taken) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return out
}

// verbsOf returns the verbs of each field of a kind, of all its versions, by path.
func verbsOf(kind runtimeschema.GroupKind, s *Schema) map[string][]Taken {
	out := map[string][]Taken{}
	for _, k := range s.Kinds() {
		if k.GroupKind() != kind {
			continue
		}
		k.Guarded(maxGuardedPlaces, func(at fieldpath.Pattern, n *Node) {
			for _, p := range n.permissions {
				out[at.String()] = append(out[at.String()], Taken{slices.Clone(at), p.verb, p.parameter != ""})
			}
		})
	}
	return out
}
