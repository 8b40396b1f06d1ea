package schema

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// statement is an entry with a valid path and verb.
type statement struct {
	path  fieldpath.Pattern
	guard *guard
}

// statements reads the entries of one document, once for all its kinds. A document that names a path twice contradicts itself, which is a
// fault. includer is the source of the document that has the fragment which the entries are about, "" for none: what fails at its places only is a
// fault of that document. from are the origins of all entries, nil if the compile is not traced: equal entries of different sources then make
// different permissions.
func statements(source, includer string, rank Rank, entries []Entry, from []Origin) ([]statement, []error) {
	var out []statement
	var errs []error
	blamed := cmp.Or(includer, source)
	seen := make(map[string]string, len(entries))
	for i := range entries {
		e := &entries[i]
		if err := checkLength(e); err != nil {
			errs = append(errs, &Error{Source: blamed, Pointer: e.Pointer, Message: err.Error()})
			continue
		}
		p, err := fieldpath.ParsePattern(e.Path)
		if err != nil {
			errs = append(errs, &Error{Source: blamed, Pointer: e.Pointer, Message: err.Error()})
			continue
		}
		path := p.String()
		if first, twice := seen[path]; twice {
			errs = append(errs, &Error{Source: blamed, Pointer: e.Pointer, Message: fmt.Sprintf("path %q stands twice in this document, first at %s: keep one of them", e.Path, first)})
			continue
		}
		seen[path] = e.Pointer
		if len(p) == 0 && e.Verb != "" {
			errs = append(errs, &Error{Source: blamed, Pointer: e.Pointer, Message: fmt.Sprintf("verb %q at the root: the root's verb is always granular:*, leave it out", e.Verb)})
			continue
		}
		if fault := saysNothing(e); fault != "" {
			errs = append(errs, &Error{Source: blamed, Pointer: e.Pointer, Message: fmt.Sprintf("%s: %s", orRoot(p), fault)})
			continue
		}
		if e.Verb != "" {
			if err := verbs.ValidateFieldVerb(e.Verb); err != nil {
				errs = append(errs, &Error{Source: blamed, Pointer: e.Pointer, Message: fmt.Sprintf("%s: %v", orRoot(p), err)})
				continue
			}
		}
		g := newGuard(source, rank, e, from)
		g.includer = includer
		out = append(out, statement{path: p, guard: g})
	}
	return out, errs
}

// saysNothing returns the fault of an entry without a verb that needs one, "" for none.
func saysNothing(e *Entry) string {
	switch {
	case e.Verb != "":
	case e.ParameterizedBy != "" || e.ParameterTreatment != "" || e.ParameterExpression != "" || e.IsBarrier():
		return "has no verb to parameterize or exclude: add a verb"
	case e.ParameterSource == "" && e.Role == RoleNone && len(e.Writes) == 0:
		return "says nothing: add a verb or a parameter source"
	}
	return ""
}

// checkLength returns an error if a document has a longer path than an API server accepts in a PermissionSchema. A compile goes down a path step by
// step. The path of an included entry is longer than what the author wrote, by a path of the fragment.
func checkLength(e *Entry) error {
	path := e.Path
	if e.Fragment != (Fragment{}) {
		path = e.Fragment.At
	}
	if n := utf8.RuneCountInString(path); n > v1alpha1.MaxPathLength {
		return fmt.Errorf("path %.64q… has %d characters: guard a field above it, with a path of at most %d", path, n, v1alpha1.MaxPathLength)
	}
	return nil
}
