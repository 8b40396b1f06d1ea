package generators

import (
	"cmp"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// reference holds the guarded fields of every kind. Both pages of Refdocs are written from it.
type reference struct {
	// kinds begin with the entry for every kind, if the documents have one.
	kinds []*refKind
}

// refKind is a kind in all its versions.
type refKind struct {
	group, kind string
	every       bool
	versions    []string
	// rows are in the order of a walk over the object.
	rows []refRow
}

// refRow is one guarded field.
type refRow struct {
	path    string
	verb    string
	barrier string
	// why is the catalogue's explanation of the verb of a key.
	why string
	// own are the powers that the catalogue gives to the verb here. powers are own and the powers of all fields that the verb covers.
	own, powers []schema.Power
	// versions are the versions that have the row.
	versions []string
	// hidden means that the row is written elsewhere. like, on the row above it, names the place.
	hidden bool
	like   *refPlace
	// repeated means that the row is in a part that other places refer to.
	repeated bool
}

// alwaysBarrier is the remark for a barrier that does not depend on values.
const alwaysBarrier = "barrier"

type refPlace struct {
	kind *refKind
	path string
}

// newReference makes the reference of the kinds of some groups, nil for all.
func newReference(s *schema.Schema, documents []compile.PermissionDocument, groups []string) *reference {
	r := &reference{}
	kinds := map[runtimeschema.GroupKind]*refKind{}
	compiled := slices.DeleteFunc(s.Kinds(), func(k *schema.Kind) bool { return groups != nil && !slices.Contains(groups, k.Group) })
	slices.SortFunc(compiled, func(a, b *schema.Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	for _, k := range compiled {
		known := kinds[k.GroupKind()]
		if known == nil {
			known = &refKind{group: k.Group, kind: k.Kind}
			kinds[k.GroupKind()] = known
			r.kinds = append(r.kinds, known)
		}
		known.add(k, documents)
	}
	if every := everyKind(documents); every != nil {
		r.kinds = slices.Insert(r.kinds, 0, every)
	}
	for _, k := range r.kinds {
		k.addPowers()
		k.addBare()
	}
	r.refer()
	return r
}

// title returns the heading of a kind: Pod or Deployment.apps.
func (k *refKind) title() string {
	switch {
	case k.every:
		return "Every kind"
	case k.group == "":
		return k.kind
	}
	return k.kind + "." + k.group
}

// add adds one version.
func (k *refKind) add(compiled *schema.Kind, documents []compile.PermissionDocument) {
	k.versions = append(k.versions, compiled.Version)
	for _, e := range effective(compiled.GroupVersionKind, documents) {
		if !guards(compiled.Root, e) {
			// Where nothing emits the parameter, the verb is used without it.
			if e.ParameterizedBy, e.ParameterTreatment, e.ParameterExpression = "", "", ""; !e.Bare || !guards(compiled.Root, e) {
				continue
			}
		}
		k.insert(newRow(e), compiled.Version)
	}
	// The keys in an OpenAPI document are no entries: they are of types, which may be at several paths.
	compiled.Guarded(maxPlaces, func(path fieldpath.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			if !p.BarsOnly() && slices.ContainsFunc(p.Origins(), func(o schema.Origin) bool { return o.Form == schema.FormOpenAPI }) {
				k.insert(rowOf(path, p), compiled.Version)
			}
		}
	})
}

// maxPlaces bounds the places of a kind, because a schema may unfold without bound.
const maxPlaces = 20_000

// rowOf returns the row of a permission.
func rowOf(path fieldpath.Pattern, p *schema.Permission) refRow {
	row := refRow{path: path.String(), verb: p.Base().String(), own: inOrder(p.Powers())}
	switch {
	case p.ParameterName() == "":
	case p.Expression() != "":
		row.verb += "(expression over " + p.ParameterName() + ")"
	case p.TakesPrefix():
		row.verb += "(prefix of " + p.ParameterName() + ")"
	default:
		row.verb += "(" + p.ParameterName() + ")"
	}
	if when := p.ExcludedWhen(); p.Excluded() {
		row.barrier = alwaysBarrier
	} else if len(when) > 0 {
		row.barrier = "barrier when " + strings.Join(when, " or ")
	}
	return row
}

func (k *refKind) insert(row refRow, version string) {
	for i := range k.rows {
		if have := &k.rows[i]; have.path == row.path && have.verb == row.verb && have.barrier == row.barrier && have.why == row.why && slices.Equal(have.own, row.own) {
			have.versions = append(have.versions, version)
			return
		}
	}
	row.versions = []string{version}
	k.place(row)
}

func (k *refKind) place(row refRow) {
	at, _ := slices.BinarySearchFunc(k.rows, row, func(a, b refRow) int { return slices.CompareFunc(steps(a.path), steps(b.path), compareSteps) })
	k.rows = slices.Insert(k.rows, at, row)
}

// effective returns the entry that counts for each path of a kind: the last one of the highest rank, as in a compile.
func effective(gvk runtimeschema.GroupVersionKind, documents []compile.PermissionDocument) []compile.Entry {
	type ranked struct {
		compile.Entry
		rank compile.Rank
	}
	byPath := map[string]ranked{}
	for i := range documents {
		d := &documents[i]
		if d.Kind != "*" && (d.Kind != gvk.Kind || d.Group != gvk.Group) || len(d.Versions) > 0 && !slices.Contains(d.Versions, gvk.Version) {
			continue
		}
		for _, e := range d.Entries {
			p, err := fieldpath.ParsePattern(e.Path)
			if err != nil || len(e.Writes) > 0 {
				continue // An entry about a write of the API server, or a mark alone, replaces no other entry.
			}
			e.Path = p.String()
			if have, ok := byPath[e.Path]; !ok || d.Rank >= have.rank {
				byPath[e.Path] = ranked{e, d.Rank}
			}
		}
	}
	var out []compile.Entry
	for _, e := range byPath {
		out = append(out, e.Entry)
	}
	slices.SortFunc(out, func(a, b compile.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// guards reports whether the compiled kind has the entry's verb at the entry's path. An optional entry is left out if the kind has no
// such field.
func guards(root *schema.Node, e compile.Entry) bool {
	verb, err := verbs.New(e.Verb)
	if err != nil {
		return false
	}
	n := root
	for _, step := range steps(e.Path) {
		if n = n.Step(step); n == nil {
			return false
		}
	}
	return slices.ContainsFunc(n.Permissions(), func(p *schema.Permission) bool {
		return p.Base() == verb && p.ParameterName() == e.ParameterizedBy
	})
}

// everyKind returns the entries of the documents for every kind, nil if there are none.
func everyKind(documents []compile.PermissionDocument) *refKind {
	k := &refKind{every: true}
	for i := range documents {
		if documents[i].Kind != "*" {
			continue
		}
		for _, e := range documents[i].Entries {
			if e.Verb != "" {
				k.insert(newRow(e), "")
			}
		}
	}
	if len(k.rows) == 0 {
		return nil
	}
	return k
}

func newRow(e compile.Entry) refRow {
	row := refRow{path: e.Path, verb: verbs.Prefix + e.Verb, why: e.Why, own: inOrder(e.Powers)}
	switch {
	case e.ParameterizedBy == "":
	case e.ParameterExpression != "":
		row.verb += "(expression over " + e.ParameterizedBy + ")"
	case e.ParameterTreatment == v1alpha1.TreatmentSlashDelimitedPrefix:
		row.verb += "(prefix of " + e.ParameterizedBy + ")"
	default:
		row.verb += "(" + e.ParameterizedBy + ")"
	}
	switch {
	case e.Excluded:
		row.barrier = alwaysBarrier
	case e.ExcludedWhen != "":
		row.barrier = "barrier when " + e.ExcludedWhen
	}
	return row
}

// inOrder returns powers in the order in which they are shown.
func inOrder(powers []schema.Power) []schema.Power {
	var out []schema.Power
	for _, p := range schema.AllPowers() {
		if slices.Contains(powers, p) {
			out = append(out, p)
		}
	}
	return out
}

func powerWords(powers []schema.Power) string {
	words := make([]string, 0, len(powers))
	for _, p := range powers {
		words = append(words, string(p))
	}
	return strings.Join(words, ", ")
}

// addPowers gives each verb the powers of the fields that it covers: all fields below it, except those behind a barrier.
func (k *refKind) addPowers() {
	for i := range k.rows {
		row := &k.rows[i]
		powers, uncovered := slices.Clone(row.own), ""
		for _, below := range k.below(i) {
			if uncovered != "" && isBelow(below.path, uncovered) {
				continue
			}
			if uncovered = ""; below.barrier == alwaysBarrier {
				uncovered = below.path
				continue
			}
			powers = append(powers, below.own...)
		}
		row.powers = inOrder(powers)
	}
}

// addBare adds rows for fields without a verb, if they have enough guarded fields below them to be a part, such as the specification in a
// template.
func (k *refKind) addBare() {
	below := map[string]int{}
	for i := range k.rows {
		path := ""
		for _, step := range steps(k.rows[i].path) {
			below[path]++
			path += step.String()
		}
	}
	for path, count := range below {
		known := slices.ContainsFunc(k.rows, func(row refRow) bool { return row.path == path })
		if path != "" && count >= minPart && !known {
			k.place(refRow{path: path, versions: k.versions})
		}
	}
}

// remark returns the text beside the path.
func (row *refRow) remark(k *refKind) string {
	text := cmp.Or(row.verb, "-")
	if row.barrier != "" {
		text += "  " + row.barrier
	}
	if len(row.powers) > 0 {
		text += "  ! " + powerWords(row.powers)
	}
	if !k.every && len(row.versions) < len(k.versions) {
		text += "  (" + strings.Join(row.versions, ", ") + ")"
	}
	if row.like != nil {
		text += "  below it as in " + row.like.kind.title() + " " + row.like.path
	}
	return text
}

// steps returns the steps of a pattern. An entry with any other path does not compile.
func steps(path string) fieldpath.Pattern {
	p, _ := fieldpath.ParsePattern(path)
	return p
}

// compareSteps orders elements by their text.
func compareSteps(a, b fieldpath.Element) int { return cmp.Compare(a.String(), b.String()) }

// isBelow reports whether a path is strictly below another.
func isBelow(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}
