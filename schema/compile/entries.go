package compile

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
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
func statements(source, includer string, rank Rank, entries []Entry, from []schema.Origin) ([]statement, []error) {
	var out []statement
	var errs []error
	blamed := cmp.Or(includer, source)
	seen := make(map[string]string, len(entries))
	for i := range entries {
		e := &entries[i]
		if err := checkLength(e); err != nil {
			errs = append(errs, &schema.Error{Source: blamed, Pointer: e.Pointer, Message: err.Error()})
			continue
		}
		p, err := fieldpath.ParsePattern(e.Path)
		if err != nil {
			errs = append(errs, &schema.Error{Source: blamed, Pointer: e.Pointer, Message: err.Error()})
			continue
		}
		path := p.String()
		if first, twice := seen[path]; twice {
			errs = append(errs, &schema.Error{Source: blamed, Pointer: e.Pointer, Message: fmt.Sprintf("path %q stands twice in this document, first at %s: keep one of them", e.Path, first)})
			continue
		}
		seen[path] = e.Pointer
		if len(p) == 0 && e.Verb != "" {
			errs = append(errs, &schema.Error{Source: blamed, Pointer: e.Pointer, Message: fmt.Sprintf("verb %q at the root: the root's verb is always granular:*, leave it out", e.Verb)})
			continue
		}
		if fault := saysNothing(e); fault != "" {
			errs = append(errs, &schema.Error{Source: blamed, Pointer: e.Pointer, Message: fmt.Sprintf("%s: %s", orRoot(p), fault)})
			continue
		}
		if e.Verb != "" {
			if err := verbs.ValidateFieldVerb(e.Verb); err != nil {
				errs = append(errs, &schema.Error{Source: blamed, Pointer: e.Pointer, Message: fmt.Sprintf("%s: %v", orRoot(p), err)})
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
	case e.ParameterSource == "" && e.Role == schema.RoleNone && len(e.Writes) == 0:
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

// guard is one entry of a document.
type guard struct {
	entry  *Entry
	source string
	// includer is the document to blame for what fails at this place, "" for the source: see statements.
	includer string
	rank     Rank
	// excluded and when say for which values the guard is a barrier: for all, or for those for which a condition is true.
	excluded bool
	when     []string
	// content is a unique text for everything that a node takes from the entry. says is the part of it that makes the permission, effect
	// the same without its origins.
	content, says, effect string
	// inherited means that the entry comes from another version. If the path does not emit the parameter, the verb is used without it. If no
	// scalar is declared there, the barrier holds for all values.
	inherited bool
	// lacksParameter means that the verb takes a parameter, which is not known here.
	lacksParameter bool
	// everyKind means that the document is about every kind, not about the versions of one.
	everyKind bool
	// from are the origins, nil if the compile is not traced.
	from []schema.Origin
}

func newGuard(source string, rank Rank, e *Entry, from []schema.Origin) *guard {
	g := &guard{entry: e, source: source, rank: rank, excluded: e.Excluded, from: from}
	if e.ExcludedWhen != "" {
		g.when = []string{e.ExcludedWhen}
	}
	g.describe()
	return g
}

// describe sets content, says and effect from the other fields.
func (g *guard) describe() {
	var c content
	e := g.entry
	c.flags(g.excluded, g.lacksParameter)
	c.texts(e.Verb, e.ParameterizedBy, e.ParameterTreatment, e.ParameterExpression)
	c.list(g.when...)
	c.list(stringsOf(e.Powers)...)
	g.effect = string(c)
	for _, from := range g.from {
		c.texts(string(from.Form), from.Source)
	}
	g.says = string(c)
	// The origins are at the end of says, so says is a text of its own here.
	c = nil
	c.flags(e.Optional, e.Bare, g.inherited)
	c.texts(g.says, e.ParameterSource, writesKey(e.Writes), e.Fragment.Name, e.Fragment.At)
	c.number(int(g.rank))
	g.content = string(c)
}

// change returns a changed copy.
func (g *guard) change(change func(*guard)) *guard {
	out, e := *g, *g.entry
	out.entry = &e
	change(&out)
	out.describe()
	return &out
}

// withoutParameter returns the guard without the parameter of its verb.
func (g *guard) withoutParameter() *guard {
	return g.change(func(out *guard) {
		out.lacksParameter = out.lacksParameter || out.entry.ParameterizedBy != ""
		out.entry.ParameterizedBy, out.entry.ParameterTreatment, out.entry.ParameterExpression = "", "", ""
	})
}

// always returns the guard as a barrier for all values.
func (g *guard) always() *guard {
	return g.change(func(out *guard) { out.excluded, out.when = true, nil })
}

// unbarred returns the guard without its barrier.
func (g *guard) unbarred() *guard {
	if !g.bars() {
		return g
	}
	return g.change(func(out *guard) { out.excluded, out.when = false, nil })
}

// joined returns the guard as a barrier wherever the other one, which has the same verb, is one.
func (g *guard) joined(other *guard) *guard {
	if g == other {
		return g
	}
	return g.change(func(out *guard) {
		for _, from := range other.from {
			if !slices.Contains(out.from, from) {
				out.from = append(slices.Clip(out.from), from)
			}
		}
		out.excluded = g.excluded || other.excluded
		out.when = nil
		if !out.excluded {
			out.when = slices.Compact(slices.Sorted(slices.Values(slices.Concat(g.when, other.when))))
		}
	})
}

func (g *guard) bars() bool { return g.entry.Verb != "" && (g.excluded || len(g.when) > 0) }

func (g *guard) sameVerb(other *guard) bool {
	a, b := g.entry, other.entry
	return a.Verb == b.Verb && a.ParameterizedBy == b.ParameterizedBy && a.ParameterTreatment == b.ParameterTreatment && a.ParameterExpression == b.ParameterExpression
}

// isIncluded reports whether the entry comes from an include.
func (g *guard) isIncluded() bool { return g.entry.Fragment != Fragment{} }

// standing orders the claims of one pattern. An include stands for many entries that its author does not see. So it adds to what other
// documents say about the kind, and replaces nothing of it, whatever the ranks. What a document says about this version outranks what one of the
// same rank says about another.
func (g *guard) standing() int {
	out := 2 * int(g.rank)
	if g.rank > RankCatalogue && !g.isIncluded() {
		out += 2 * int(RankAdministrator)
	}
	if !g.inherited {
		out++
	}
	return out
}

// writesKey returns a unique text for the writes.
func writesKey(writes []endpoint.Write) string {
	if len(writes) == 0 {
		return ""
	}
	out, err := json.Marshal(writes)
	if err != nil {
		return fmt.Sprintf("%q", err)
	}
	return string(out)
}

// blamed returns the source of the document to blame for what fails at this place.
func (g *guard) blamed() string { return cmp.Or(g.includer, g.source) }

func (g *guard) fault(format string, args ...any) *schema.Error {
	return &schema.Error{Source: g.blamed(), Pointer: g.entry.Pointer, Message: fmt.Sprintf(format, args...)}
}

// content is a text for everything that counts of a value: two values with equal content are the same for a compile. Each part is written with its
// length, so no two contents are equal by chance. A compile writes one for each entry and overlay: package fmt took a sixth of its time.
type content []byte

// flags writes at most eight flags.
func (c *content) flags(set ...bool) {
	var b byte
	for i, is := range set {
		if is {
			b |= 1 << i
		}
	}
	*c = append(*c, b)
}

func (c *content) number(n int) { *c = binary.AppendUvarint(*c, uint64(n)) }

// texts writes texts whose number is always the same.
func (c *content) texts(all ...string) {
	for _, text := range all {
		c.number(len(text))
		*c = append(*c, text...)
	}
}

// list writes any number of texts.
func (c *content) list(all ...string) {
	c.number(len(all))
	c.texts(all...)
}

// guards writes guards, of which some may be nil. A guard has content, so the empty text is that of nil.
func (c *content) guards(all []*guard) {
	c.number(len(all))
	for _, g := range all {
		if g == nil {
			c.texts("")
			continue
		}
		c.texts(g.content)
	}
}

func stringsOf[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}
