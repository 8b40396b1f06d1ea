package plugin

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/printable"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// text is the answer of explain for readers. What documents say is made printable before colours are added.
type text struct {
	strings.Builder
	paint  paint
	places map[string][]string
	left   int
}

func newText(to io.Writer, p *fieldtree.Place) *text {
	return &text{paint: paint{terminal(to) && os.Getenv("NO_COLOR") == ""}, places: p.Kind.Verbs(), left: maxFields}
}

func (t *text) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// explain writes the answer about a place.
func (t *text) explain(p *fieldtree.Place, recursive bool) []byte {
	k, n := p.Kind, p.Node()
	for _, row := range [][2]string{{"GROUP:", k.Group}, {"KIND:", k.Kind}, {"VERSION:", k.Version}, {"RESOURCE:", k.ResourceName()}} {
		if row[1] != "" {
			t.line("%s%s", t.paint.title(fmt.Sprintf("%-12s", row[0])), printable.Text(row[1]))
		}
	}
	t.line("")
	if len(p.Path) > 0 {
		last := p.Path[len(p.Path)-1:]
		t.line("%s %s <%s>%s", t.paint.title("FIELD:"), printable.Text(strings.TrimPrefix(last.String(), ".")), printable.Text(n.Type), t.role(n.Role))
		t.line("%s  %s\n", t.paint.title("PATH:"), printable.Text(p.Path.String()))
	}
	if k.Lossy {
		t.line("A write through version %s may change fields that it does not show. It needs granular:* or the generic permission.", k.Version)
	}
	if k.Instead != "" {
		t.line("Advice: %s.", printable.Text(k.Instead))
	}
	if k.Lossy || k.Instead != "" {
		t.line("")
	}
	chains, whole := p.Charges(), p.Whole()
	if whole != nil {
		t.line("The field is a part of %s, which is atomic: a change of the field changes all of it, and needs a verb of it.\n", printable.Text(cmp.Or(whole.Path.String(), "the object")))
	}
	for i, chain := range chains {
		title := "VERBS from general to specific. Any one of them covers the field, unless it says otherwise:"
		switch {
		case whole != nil && len(chains) > 1:
			title = fmt.Sprintf("VERBS from general to specific, list %d of %d: the lists are those of the atomic value, and of what takes the field out of verbs above it:", i+1, len(chains))
		case len(chains) > 1:
			title = fmt.Sprintf("VERBS from general to specific, in object %d of %d with barriers that the field becomes a part of:", i+1, len(chains))
		}
		t.line("%s", t.paint.title(title))
		t.chain(chain)
		t.line("")
	}
	if whole != nil && len(chains) > 1 {
		t.line("A change needs a verb of each list. Of a list with a barrier it needs one only if the barrier holds.\n")
	} else if len(chains) > 1 {
		t.line("A change needs a verb of each of these whose barrier holds, or of any if none holds.\n")
	}
	t.barriers(p)
	t.powers(n)
	if rows := t.rows(p, recursive, 0); len(rows) > 0 {
		t.line("%s", t.paint.title("FIELDS:"))
		t.table(rows)
	}
	if t.left < 0 {
		t.line("There are more fields: ask about one of these.")
	}
	return []byte(t.String())
}

// chain writes the verbs of a chain: what each covers, or why it does not cover this field, and where it comes from.
func (t *text) chain(links []fieldtree.Link) {
	var rows [][]cell
	for i := range links {
		l := &links[i]
		verb, covers, source := plainCell(strings.Join(genericVerbs, ", ")), "every field without a barrier", ""
		if l.Of != nil {
			verb, source = plainCell(l.Verb), sourceText(l.Of)
			if len(l.Path) > 0 {
				covers = t.covers(l)
			}
		}
		if l.Counts() {
			rows = append(rows, []cell{verb, plainCell(source), plainCell(covers)})
			verb, source = cell{}, ""
		} else {
			verb.painted = t.paint.faint(verb.plain)
		}
		for j, loss := range l.Lost {
			words := plainCell(lossText(loss))
			if i > 0 && j < len(links[i-1].Lost) && lossText(links[i-1].Lost[j]) == words.plain {
				words = plainCell("not this field: as said above")
			}
			words.painted = t.paint.faint(words.plain)
			rows = append(rows, []cell{verb, plainCell(source), words})
			verb, source = cell{}, ""
		}
	}
	t.table(rows)
}

// shownPlaces bounds the places of a verb in a row.
const shownPlaces = 2

// covers returns what a verb covers in the kind.
func (t *text) covers(l *fieldtree.Link) string {
	at := l.Path.String()
	others := slices.DeleteFunc(slices.Clone(t.places[l.Of.Text]), func(path string) bool { return path == at })
	words := at
	if len(others) > 0 {
		words += " and " + others[0]
	}
	if more := len(others) + 1 - shownPlaces; more > 0 {
		words = fmt.Sprintf("%s and %d more fields", at, more+1)
	}
	if l.OfOne && l.Verb == l.Of.Text {
		return "the same, of one " + l.Of.Parameter
	}
	if l.OfOne {
		return "the same, of this " + l.Of.Parameter
	}
	return words
}

func lossText(l fieldtree.Loss) string {
	words := "not this field: " + l.By + " is a barrier"
	if l.Set != "" {
		words += " of " + setText(l.Set)
	}
	if len(l.When) > 0 || l.One != "" {
		words += " " + conditionText(l.When, l.Set != "", l.One)
	}
	return words
}

// conditionText returns when a barrier holds.
func conditionText(when []string, isSet bool, one string) string {
	var words []string
	if one != "" {
		words = append(words, "for "+one)
	}
	if len(when) > 0 {
		joint := " or "
		if isSet {
			joint = " and "
		}
		words = append(words, "when "+strings.Join(when, joint))
	}
	if len(words) == 0 {
		return "always"
	}
	return strings.Join(words, " ")
}

// documentText names a document of a kind. Objects of a cluster have their kind in their name, files have not.
func documentText(kind, source string) string {
	if source == "" || strings.HasPrefix(source, kind+" ") {
		return source
	}
	return kind + " in " + source
}

func setText(source string) string { return documentText(v1alpha1.UncoveredPermissionSetKind, source) }

// sourceText names the sources of a verb.
func sourceText(v *fieldtree.Verb) string {
	var out []string
	for _, o := range v.Origins {
		switch o.Form {
		case schema.FormCatalogue:
			out = append(out, "catalogue")
		case schema.FormScale:
			out = append(out, "subresource scale of "+o.Source)
		case schema.FormSchemaKeys:
			out = append(out, "schema of "+o.Source)
		case schema.FormAnnotation:
			out = append(out, "annotation of "+o.Source)
		case schema.FormOpenAPI:
			out = append(out, "OpenAPI of "+o.Source)
		default:
			out = append(out, documentText(v1alpha1.PermissionSchemaKind, o.Source))
		}
	}
	return strings.Join(out, ", ")
}

// barriers writes the barriers of the field itself.
func (t *text) barriers(p *fieldtree.Place) {
	var rows [][]cell
	add := func(verb, when, source string) {
		words := printable.Text(when)
		rows = append(rows, []cell{plainCell(verb), {words, t.paint.with("31", "", words)}, plainCell(source)})
	}
	for _, v := range p.Node().Verbs {
		if v.Bars() {
			add(v.Text, conditionText(v.ExcludedWhen, false, ""), sourceText(v))
		}
		for _, b := range p.SetsOn(v) {
			when := conditionText(b.When(), true, "")
			if b.StatusOnly {
				when += ", in the status"
			}
			for _, action := range b.Actions {
				when += ", only " + string(action)
			}
			add(b.Verb.String(), when, setText(b.Source))
		}
	}
	if len(rows) == 0 {
		return
	}
	t.line("%s", t.paint.title("BARRIERS: update and the verbs above do not cover the field"))
	t.table(rows)
	t.line("")
}

// powers writes the powers of the verbs of the field.
func (t *text) powers(n *fieldtree.Node) {
	var rows [][]cell
	for _, p := range schema.AllPowers() {
		if slices.ContainsFunc(n.Verbs, func(v *fieldtree.Verb) bool { return slices.Contains(v.Powers, p) }) {
			name := plainCell(string(p))
			name.painted = t.paint.power(name.plain)
			rows = append(rows, []cell{name, plainCell(p.Sentence())})
		}
	}
	if len(rows) == 0 {
		return
	}
	t.line("%s", t.paint.title("POWERS: what the verb lets its holder do beyond the field"))
	t.table(rows)
	t.line("")
}

func (t *text) role(r schema.Role) string {
	switch r {
	case schema.RoleServerWritten:
		return " (written by the API server, needs no verb)"
	case schema.RoleIdentity:
		return " (needs no verb in a new object)"
	case schema.RoleOwnership:
		return " (compared by owners)"
	case schema.RoleNone:
	}
	return ""
}

// rows returns the fields below a place: one level, with the fields of the items of a list, or all levels.
func (t *text) rows(p *fieldtree.Place, recursive bool, depth int) [][]cell {
	var out [][]cell
	for _, c := range p.Node().Children {
		if t.left--; t.left < 0 {
			break
		}
		below := p.Child(c)
		again := below.Repeats()
		name := fieldName(c.Element)
		first := plainCell(strings.Repeat("  ", depth) + name + " <" + c.Type + ">")
		first.painted = strings.Repeat("  ", depth) + printable.Text(name) + " " + t.paint.faint("<"+printable.Text(c.Type)+">")
		for i, v := range verbsOrNone(below.Node()) {
			if i > 0 {
				first = cell{}
			}
			row := t.verbRow(below, v)
			if i == 0 {
				row[2] = t.remark(row[2], c.Role, again)
			}
			out = append(out, append([]cell{first}, row...))
		}
		if again == nil && (recursive || c.Any) {
			out = append(out, t.rows(below, recursive, depth+1)...)
		}
	}
	return out
}

func fieldName(e fieldpath.Element) string { return strings.TrimPrefix(e.String(), ".") }

// verbsOrNone returns the verbs of a node, or nil as its only one.
func verbsOrNone(n *fieldtree.Node) []*fieldtree.Verb {
	if len(n.Verbs) == 0 {
		return []*fieldtree.Verb{nil}
	}
	return n.Verbs
}

// remark adds to a cell what is special about the field.
func (t *text) remark(c cell, role schema.Role, again *fieldtree.Place) cell {
	words := strings.TrimSpace(t.role(role))
	if again != nil {
		path := again.Path.String()
		if path == "" {
			path = "the object"
		}
		words = strings.TrimSpace(words + " (below it as in " + path + ")")
	}
	if words == "" {
		return c
	}
	words = printable.Text(words)
	return cell{c.plain + "  " + words, strings.TrimSpace(c.painted + "  " + t.paint.faint(words))}
}

// verbRow returns the cells of a verb: the verb, its source, and its barriers and powers.
func (t *text) verbRow(p *fieldtree.Place, v *fieldtree.Verb) []cell {
	if v == nil {
		return []cell{plainCell("-"), {}, {}}
	}
	var marks []string
	if v.Bars() {
		words := "barrier"
		if len(v.ExcludedWhen) > 0 {
			words += " " + conditionText(v.ExcludedWhen, false, "")
		}
		marks = append(marks, t.paint.barrier(printable.Text(words)))
	}
	for _, b := range p.SetsOn(v) {
		words := "barrier of " + setText(b.Source)
		if one, isOne := b.Verb.Parameter(); isOne || len(b.Conditions) > 0 {
			words += " " + conditionText(b.When(), true, one)
		}
		if !b.Denies() {
			words += fmt.Sprintf(", only %v", b.Actions)
		}
		if b.StatusOnly && len(p.Path) == 0 {
			words += ", in the status"
		}
		marks = append(marks, t.paint.barrier(printable.Text(words)))
	}
	if len(v.Powers) > 0 {
		names := make([]string, len(v.Powers))
		for i, p := range v.Powers {
			names[i] = string(p)
		}
		marks = append(marks, t.paint.power("! "+strings.Join(names, ", ")))
	}
	// The last column is not aligned, so its width does not matter.
	remarks := strings.Join(marks, "  ")
	return []cell{plainCell(v.Text), plainCell(sourceText(v)), {remarks, remarks}}
}
