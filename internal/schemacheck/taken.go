package schemacheck

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Taken is a verb that no longer covers a field.
type Taken struct {
	// Path is the first such field.
	Path fieldpath.Pattern
	Verb verbs.Verb
	// Parameterized means that the verb had a parameter there, so the verbs of its name with a parameter are taken as well.
	Parameterized bool
	// Kept means that the verb without a parameter still covers the field. Verbs with a parameter stand for other values there.
	Kept bool
}

// Is reports whether a verb, as written in a role, is the verb that was taken.
func (t Taken) Is(verb string) bool {
	v, err := verbs.Parse(verb)
	if err != nil {
		return false
	}
	if v == t.Verb {
		return !t.Kept
	}
	return t.Parameterized && v.WithoutParameter() == t.Verb
}

// String returns the verb, with "(…)" if only verbs with a parameter are taken.
func (t Taken) String() string {
	if t.Kept {
		return t.Verb.String() + "(…)"
	}
	return t.Verb.String()
}

// TakenFrom returns the verbs that cover a field of a kind in the schema before and not in the schema after, in the order of the fields.
func TakenFrom(kind runtimeschema.GroupKind, before, after *schema.Schema) []Taken {
	var out []Taken
	for _, was := range before.Kinds() {
		if was.GroupKind() != kind {
			continue
		}
		root := schema.Unknown()
		if is, err := after.Kind(was.GroupVersionKind); err == nil {
			root = is.Root
		}
		compareTrees(was.Root, root, nil, func(c *counterpart) {
			for _, p := range c.was.Permissions() {
				if c.keeps(p) {
					continue
				}
				t := Taken{slices.Clone(c.path), p.Base(), p.ParameterName() != "", c.covers(p.Base())}
				same := func(u Taken) bool { return u.Verb == t.Verb && u.Parameterized == t.Parameterized && u.Kept == t.Kept }
				if !slices.ContainsFunc(out, same) {
					out = append(out, t)
				}
			}
		})
	}
	slices.SortStableFunc(out, func(a, b Taken) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return out
}
