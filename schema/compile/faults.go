package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// unknownPaths reports the guards below o whose paths do not exist in the type.
func (b *builder) unknownPaths(o *overlay, atom smd.Atom) {
	isMap := atom.Map != nil && schema.HasValues(atom.Map)
	if o.any != nil && !isMap && atom.List == nil {
		b.lost(o.any, b.at.Child(fieldpath.Element{Any: true}), "no list or map is there")
	}
	if isMap {
		return
	}
	known := map[string]bool{}
	if atom.Map != nil {
		for _, f := range atom.Map.Fields {
			known[f.Name] = true
		}
	}
	for _, name := range sortedKeys(o.fields) {
		if !known[name] {
			cure := "nothing is below it"
			if len(known) > 0 {
				cure = "its siblings are " + strings.Join(sortedKeys(known), ", ")
			}
			b.lost(o.fields[name], b.at.Child(fieldpath.Element{Name: name}), cure)
		}
	}
}

// lost reports the guards at and below a path that does not exist. at is written over: a copy for each step would take memory with the square of the
// length of a path.
func (b *builder) lost(o *overlay, at fieldpath.Pattern, cure string) {
	for _, g := range o.own() {
		if !g.entry.Optional {
			b.lacking[g] = g.fault("path %q does not exist: %s", at, cure)
		}
	}
	if o.any != nil {
		b.lost(o.any, append(at, fieldpath.Element{Any: true}), cure)
	}
	for _, name := range sortedKeys(o.fields) {
		b.lost(o.fields[name], append(at, fieldpath.Element{Name: name}), cure)
	}
}

// orRoot returns a pattern as a message shows it.
func orRoot(p fieldpath.Pattern) string {
	if len(p) == 0 {
		return "the root"
	}
	return fmt.Sprintf("%q", p.String())
}

// isLongPrefix reports whether a key that a map singles out is a prefix with more than one slash. Of the key of a value only the part before the
// first slash is looked up (Map.Child), so such a prefix would hold for no key, and its barrier for nothing.
func isLongPrefix(key string) bool {
	return strings.HasSuffix(key, "/") && strings.IndexByte(key, '/') < len(key)-1
}

// prefixed returns the faults of the entries at and below a key, if the key is a prefix with more than one slash.
func (o *overlay) prefixed(key string) []error {
	if !isLongPrefix(key) {
		return nil
	}
	var errs []error
	first := key[:strings.IndexByte(key, '/')+1]
	for _, g := range o.guards() {
		errs = append(errs, g.fault("prefix %q: has a slash before its end, and would hold for no key: end it at the first slash, %q, or name a whole key", key, first))
	}
	return errs
}

// guards returns the guards at and below a place.
func (o *overlay) guards() []*guard {
	if o == nil {
		return nil
	}
	out := o.any.guards()
	if o.claim != nil {
		out = append(out, o.claim)
	}
	for _, name := range sortedKeys(o.fields) {
		out = append(out, o.fields[name].guards()...)
	}
	return out
}

// unemitted is an entry that replaces an entry with a parameter source, and does not emit that parameter.
type unemitted struct {
	fault     error
	parameter string
	// around is the value whose parts can take the parameter.
	around fieldpath.Pattern
}

// parameterless is a verb that lacks the parameter that it takes.
type parameterless struct {
	parameter string
	at        fieldpath.Pattern
}

// noteUnemitted notes such entries. It is a fault if a verb lacks the parameter: with the parameter, barriers on the verb would disappear.
func (b *builder) noteUnemitted(o *overlay, atom smd.Atom) {
	by := o.emitting()
	if by == nil || !emits(atom) {
		return
	}
	for _, g := range o.emitters {
		if name := g.entry.ParameterSource; name != by.entry.ParameterSource && !g.isIncluded() {
			b.unemitted = append(b.unemitted, unemitted{unemittedFault(by, g, orRoot(b.at)), name, slices.Clone(b.at[:max(len(b.at)-1, 0)])})
		}
	}
}

// unemittedFaults returns the faults among the entries that were noted.
func (b *builder) unemittedFaults() []error {
	var out []error
	for _, u := range b.unemitted {
		if slices.ContainsFunc(b.parameterless, func(v parameterless) bool {
			return v.parameter == u.parameter && len(v.at) >= len(u.around) && slices.Equal(v.at[:len(u.around)], u.around)
		}) {
			out = append(out, u.fault)
		}
	}
	b.unemitted, b.parameterless = nil, nil
	return out
}

func unemittedFault(by, replaced *guard, at string) error {
	name := replaced.entry.ParameterSource
	return by.fault("%s: takes the place of an entry that emits parameter %q (%s), so every verb that takes the parameter would be gone: add parameterSource: %s", at, name, replaced.source, name)
}

// emits reports whether a type can emit a parameter, from its keys or its value.
func emits(atom smd.Atom) bool {
	return atom.Scalar != nil || atom.Map != nil && atom.Map.ElementRelationship != smd.Atomic && schema.HasValues(atom.Map)
}

// barsForNothing returns the faults of barriers at or below a field that is never charged because of its role.
func (o *overlay) barsForNothing(at fieldpath.Pattern) []error {
	if o.role == schema.RoleNone {
		return nil
	}
	const never = "%s: a barrier here holds nothing: %s: leave excluded and excludedWhen out"
	because := map[schema.Role]string{
		schema.RoleServerWritten: "the API server itself writes the field, and no change of it is charged",
		schema.RoleIdentity:      "the field identifies the object, and is not charged when the object is created",
		schema.RoleOwnership:     "changes of owners are charged at the fields that are owned",
	}[o.role]
	var out []error
	var visit func(*overlay, fieldpath.Pattern)
	visit = func(o *overlay, at fieldpath.Pattern) {
		if o == nil {
			return
		}
		for _, g := range o.barriers {
			out = append(out, g.fault(never, orRoot(at), because))
		}
		visit(o.any, at.Child(fieldpath.Element{Any: true}))
		for _, name := range sortedKeys(o.fields) {
			visit(o.fields[name], at.Child(fieldpath.Element{Name: name}))
		}
	}
	visit(o, at)
	return out
}

// mostNodes is the maximum number of nodes of a kind at and above entries. Nodes with the same entries are several if the paths to them emit other
// parameters, and a value that may be a list or a map emits one or none: each such step of a path doubles the nodes.
const mostNodes = 50_000

// budget counts the nodes of a kind, and which documents they are of.
type budget struct {
	made int
	// spent is what each document that is not of the catalogue has spent.
	spent map[string]*spending
	full  bool
}

// spending is the number of nodes at the entries of a document, and one of these entries.
type spending struct {
	nodes int
	entry *guard
}

func newBudget() budget { return budget{spent: map[string]*spending{}} }

// count counts a node, and each barrier that holds there.
func (b *budget) count(o *overlay) {
	b.made++
	for _, l := range o.levels() {
		b.made += len(l.barriers)
	}
	for _, g := range o.own() {
		b.charge(g)
	}
}

// charge counts a node for the document of a guard.
func (b *budget) charge(g *guard) {
	if g.rank <= RankCatalogue {
		return
	}
	blamed := g.blamed()
	if b.spent[blamed] == nil {
		b.spent[blamed] = &spending{entry: g}
	}
	b.spent[blamed].nodes++
}

// fault returns the fault of a kind that is over its budget, once, and then nil. It is of the document with the most nodes: the catalogue has room for
// every kind, so that a fault in it would make all kinds fail for what one document says. topology is the source of the types.
func (b *budget) fault(topology string, at fieldpath.Pattern) *schema.Error {
	if b.full {
		return nil
	}
	b.full = true
	err := &schema.Error{Source: topology}
	sources := sortedKeys(b.spent)
	if len(sources) > 0 {
		most := slices.MaxFunc(sources, func(x, y string) int { return cmp.Compare(b.spent[x].nodes, b.spent[y].nodes) })
		err.Source, err.Pointer = most, b.spent[most].entry.entry.Pointer
	}
	err.Message = fmt.Sprintf("%s: the entries of the kind stand for more than %d places: leave out parameter sources of paths through fields that the type does not know, and entries for all names and one at several steps of a path", orRoot(at), mostNodes)
	return err
}
