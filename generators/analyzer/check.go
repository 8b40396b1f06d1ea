package analyzer

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/markers/grammar"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// packageCheck is the check of one package.
type packageCheck struct {
	*checker
	pass  *analysis.Pass
	types []*owner
	// marked means that the package has a permission marker.
	marked bool
	group  string
	// suppressed are the rules that a directive leaves out, by line of the file and rule.
	suppressed map[string]map[int]map[string]bool
}

// groupName matches the marker of the API group in the comment of a package.
var groupName = regexp.MustCompile(`(?m)^//\s*\+groupName[=:]\s*"?([a-z0-9.-]+)"?`)

func (c *checker) run(pass *analysis.Pass) (any, error) {
	p := &packageCheck{checker: c, pass: pass, suppressed: map[string]map[int]map[string]bool{}}
	for _, file := range pass.Files {
		for _, comments := range file.Comments {
			for _, comment := range comments.List {
				if m := groupName.FindStringSubmatch(comment.Text); m != nil {
					p.group = m[1]
				}
			}
		}
	}
	var readers []*reader
	for _, file := range pass.Files {
		r := &reader{packageCheck: p, file: file, owners: map[*ast.CommentGroup]*owner{}}
		p.directives(file)
		readers = append(readers, r)
	}
	for _, r := range readers {
		r.read()
	}
	p.check()
	return nil, nil
}

// report reports a finding with its cure.
func (p *packageCheck) report(pos, end token.Pos, rule, message, cure string, fixes ...analysis.SuggestedFix) {
	p.diagnose(pos, end, rule, message+": "+cure, fixes...)
}

// diagnose reports a finding whose text ends with its cure.
func (p *packageCheck) diagnose(pos, end token.Pos, rule, text string, fixes ...analysis.SuggestedFix) {
	at := p.pass.Fset.Position(pos)
	if p.disabled[rule] || p.suppressed[at.Filename][at.Line][rule] {
		return
	}
	p.pass.Report(analysis.Diagnostic{Pos: pos, End: end, Category: rule, Message: fmt.Sprintf("%s [%s]", text, rule), SuggestedFixes: fixes})
}

// check applies the rules to the types and fields.
func (p *packageCheck) check() {
	sources, users := map[string]bool{}, map[string]bool{}
	p.each(func(o *owner) {
		if m := o.markers[grammar.Source]; m != nil {
			sources[m.Value] = true
		}
		if m := o.markers[grammar.By]; m != nil {
			users[m.Value] = true
		}
	})
	p.each(func(o *owner) {
		p.verb(o)
		p.treatment(o)
		p.barrier(o)
		if m := o.markers[grammar.By]; m != nil && !sources[m.Value] {
			p.report(m.pos, m.end, parameterNoSource, fmt.Sprintf("no type or field of this package emits parameter %q", m.Value), fmt.Sprintf("put +permission-parameter-source:%q on a map, a scalar or a key property at or above the field", m.Value))
		}
		if m := o.markers[grammar.Source]; m != nil && !users[m.Value] {
			p.report(m.pos, m.end, sourceNoUser, fmt.Sprintf("parameter %q is emitted, and no verb of this package takes it", m.Value), "let a verb take it with +permission-parameterized-by, or remove the source")
		}
		if o.field != nil {
			p.atomic(o)
			p.power(o)
		}
	})
}

// each visits the types, each with its fields behind it.
func (p *packageCheck) each(visit func(*owner)) {
	for _, t := range p.types {
		visit(t)
		for _, f := range t.fields {
			if f.unused == "" && !f.inline {
				visit(f)
			}
		}
	}
}

// verb applies the conventions to the name of a verb.
func (p *packageCheck) verb(o *owner) {
	m := o.markers[grammar.Verb]
	if m == nil {
		return
	}
	use := convention.Use{Verb: m.Value, Group: p.group, Kind: p.kindOf(o), Own: true}
	if o.field != nil {
		use.Path = fieldpath.Pattern{{Name: o.name}}
	}
	for _, problem := range p.Verb(use) {
		var fixes []analysis.SuggestedFix
		if problem.Instead != "" {
			fixes = m.replace(problem.Instead)
		}
		p.report(m.pos, m.end, problem.Rule, problem.Message, problem.Cure, fixes...)
	}
}

// kindOf returns the kind that a type belongs to by its name: Gadget for GadgetSpec. It is "" if that is not known.
func (p *packageCheck) kindOf(o *owner) string {
	t := o
	if o.of != nil {
		t = o.of
	}
	best := ""
	for _, k := range p.types {
		if strings.HasPrefix(t.name, k.name) && len(k.name) > len(best) && isKind(k) {
			best = k.name
		}
	}
	return best
}

// isKind reports whether a type is a kind: it embeds TypeMeta and ObjectMeta.
func isKind(t *owner) bool {
	embeds := map[string]bool{}
	for _, f := range t.fields {
		if len(f.field.Names) > 0 {
			continue
		}
		switch e := f.field.Type.(type) {
		case *ast.SelectorExpr:
			embeds[e.Sel.Name] = true
		case *ast.Ident:
			embeds[e.Name] = true
		}
	}
	return embeds["TypeMeta"] && embeds["ObjectMeta"]
}

// replace returns the fix that writes another value, with the same quotes.
func (m *marker) replace(value string) []analysis.SuggestedFix {
	switch m.quote {
	case `"`:
		value = strconv.Quote(value)
	case "`":
		value = "`" + value + "`"
	}
	return []analysis.SuggestedFix{{
		Message:   fmt.Sprintf("write %s", value),
		TextEdits: []analysis.TextEdit{{Pos: m.pos, End: m.end, NewText: []byte(value)}},
	}}
}

func (p *packageCheck) treatment(o *owner) {
	m := o.markers[grammar.Treatment]
	if m == nil || m.Value == v1alpha1.TreatmentSlashDelimitedPrefix {
		return
	}
	var fixes []analysis.SuggestedFix
	if spelling.Nearest(m.Value, []string{v1alpha1.TreatmentSlashDelimitedPrefix}) != "" {
		fixes = m.replace(v1alpha1.TreatmentSlashDelimitedPrefix)
	}
	p.report(m.pos, m.end, treatmentUnknown, fmt.Sprintf("parameter treatment %q is unknown", m.Value), fmt.Sprintf("use %q or leave it out", v1alpha1.TreatmentSlashDelimitedPrefix), fixes...)
}

// barrier reports markers that need a verb, where neither the field nor its type has one. The markers of a type of another package are not known.
func (p *packageCheck) barrier(o *owner) {
	if o.markers[grammar.Verb] != nil {
		return
	}
	if o.field != nil {
		if t, known := p.typeOf(o.field.Type); !known || t != nil && t.markers[grammar.Verb] != nil {
			return
		}
	}
	for _, key := range []grammar.Key{grammar.Excluded, grammar.When, grammar.By} {
		if m := o.markers[key]; m != nil && o.field != nil {
			p.report(m.start, m.end, convention.MarkerWithoutVerb, fmt.Sprintf("marker %q: neither the field %q nor its type has a verb", key.Marker(), o.name), "add +permission-verb")
			return
		}
	}
}

// typeOf returns the type of this package that an expression names, through pointers. known is false for a type of another package.
func (p *packageCheck) typeOf(e ast.Expr) (t *owner, known bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.StarExpr:
		return p.typeOf(e.X)
	case *ast.IndexExpr, *ast.IndexListExpr, *ast.SelectorExpr:
		return nil, false
	case *ast.Ident:
		for _, t := range p.types {
			if t.name == e.Name {
				return t, true
			}
		}
		object := p.pass.TypesInfo.Uses[e]
		return nil, object == nil || object.Pkg() == nil || object.Pkg() == p.pass.Pkg
	}
	return nil, true
}

// listType matches the marker that says how a list compares.
var listType = regexp.MustCompile(`(?m)^//\s*\+(?:k8s:)?listType[=:]\s*"?([a-z]+)`)

// atomic reports a list that compares as a whole, if the type of its items has verbs that are no barriers.
func (p *packageCheck) atomic(o *owner) {
	list, ok := ast.Unparen(o.field.Type).(*ast.ArrayType)
	if !ok {
		return
	}
	item, _ := p.typeOf(list.Elt)
	if item == nil {
		return
	}
	for _, group := range o.comments {
		for _, c := range group.List {
			if m := listType.FindStringSubmatch(c.Text); m != nil && m[1] != "atomic" {
				return
			}
		}
	}
	for _, f := range item.fields {
		if m := f.markers[grammar.Verb]; m != nil && f.markers[grammar.Excluded] == nil && f.markers[grammar.When] == nil {
			p.report(o.pos, o.field.End(), atomicItemVerb, fmt.Sprintf("list %q is atomic, so verb %q of its items has no effect: each change needs the verb of the whole list", o.name, m.Value),
				"give it +listType=map and +listMapKey, or move the verb to the list")
			return
		}
	}
}

// power reports a field with a power by its name, in a package that uses permission markers.
func (p *packageCheck) power(o *owner) {
	if !p.marked || o.markers[grammar.Verb] != nil || strings.HasSuffix(o.of.name, "Status") || strings.HasSuffix(o.of.name, "List") || isKind(o.of) {
		return
	}
	if t, known := p.typeOf(o.field.Type); known && t != nil && t.markers[grammar.Verb] != nil {
		return
	}
	if problem, has := convention.Unguarded(o.name, ""); has && convention.Fits(o.name, p.word(o.field.Type)) {
		p.report(o.pos, o.field.End(), problem.Rule, problem.Message, problem.Cure)
	}
}

// word returns the type of an expression as a word of OpenAPI, "" for anything but scalars.
func (p *packageCheck) word(e ast.Expr) string {
	t := p.pass.TypesInfo.TypeOf(e)
	if t == nil {
		return ""
	}
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	basic, ok := t.Underlying().(*types.Basic)
	switch {
	case !ok:
		return ""
	case basic.Info()&types.IsBoolean != 0:
		return "boolean"
	case basic.Info()&types.IsNumeric != 0:
		return "number"
	}
	return "string"
}
