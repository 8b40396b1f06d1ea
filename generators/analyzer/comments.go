package analyzer

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
)

// marker is a marker with its place.
type marker struct {
	grammar.Marker
	// pos and end enclose the value with its quotes. start is the place of the +.
	start, pos, end token.Pos
	// quote is the sign around the value: a double quote, a backquote or nothing.
	quote string
}

// owner is a type or a field with its markers.
type owner struct {
	// name is the name of the type, or the name of the field in JSON.
	name string
	pos  token.Pos
	// of is the type that has the field, nil for a type.
	of *owner
	// spec is the declaration of a type, and field that of a field.
	spec  *ast.TypeSpec
	field *ast.Field
	// unused says why a field is not in JSON, "" if it is.
	unused string
	// inline means that the fields of the type are fields of the struct.
	inline  bool
	markers map[grammar.Key]*marker
	// comments are the comments above.
	comments []*ast.CommentGroup
	fields   []*owner
}

// reader reads the comments of one file.
type reader struct {
	*packageCheck
	file   *ast.File
	owners map[*ast.CommentGroup]*owner
}

// read finds the types, the fields and their markers.
func (r *reader) read() {
	end := r.file.Name.End()
	for _, decl := range r.file.Decls {
		if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
			r.declaration(types, end)
		}
		end = decl.End()
	}
	for _, group := range r.file.Comments {
		for _, c := range group.List {
			r.comment(group, c)
		}
	}
}

func (r *reader) declaration(decl *ast.GenDecl, end token.Pos) {
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		o := &owner{name: spec.Name.Name, pos: spec.Name.Pos(), spec: spec, markers: map[grammar.Key]*marker{}}
		r.types = append(r.types, o)
		doc, start := spec.Doc, spec.Pos()
		if !decl.Lparen.IsValid() {
			start, doc = decl.Pos(), cmp.Or(spec.Doc, decl.Doc)
		} else {
			end = max(end, decl.Lparen)
		}
		r.own(o, doc, end, start)
		end = spec.End()
		if structure, ok := spec.Type.(*ast.StructType); ok {
			r.fields(o, structure)
		}
	}
}

func (r *reader) fields(of *owner, structure *ast.StructType) {
	end := structure.Fields.Opening
	for _, field := range structure.Fields.List {
		o := &owner{pos: field.Pos(), of: of, field: field, markers: map[grammar.Key]*marker{}}
		o.name, o.unused, o.inline = nameOf(field)
		of.fields = append(of.fields, o)
		r.own(o, field.Doc, end, field.Pos())
		end = field.End()
	}
}

// own gives an owner its documentation, and the closest comment before that, which controller-gen reads as well.
func (r *reader) own(o *owner, doc *ast.CommentGroup, end, start token.Pos) {
	if doc != nil {
		r.owners[doc] = o
		o.comments = append(o.comments, doc)
		start = doc.Pos()
	}
	var closest *ast.CommentGroup
	for _, group := range r.file.Comments {
		if group.End() <= start {
			closest = group
		}
	}
	line := func(p token.Pos) int { return r.pass.Fset.Position(p).Line }
	if closest != nil && closest.Pos() > end && line(closest.Pos()) != line(end) && closest != r.file.Doc {
		r.owners[closest] = o
		o.comments = append(o.comments, closest)
	}
}

// nameOf returns the name of a field in JSON.
func nameOf(field *ast.Field) (name, unused string, inline bool) {
	tag := ""
	if field.Tag != nil {
		if text, err := strconv.Unquote(field.Tag.Value); err == nil {
			tag = reflect.StructTag(text).Get("json")
		}
	}
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case len(field.Names) > 1:
		return field.Names[0].Name, "shares its line with another field", false
	case tag == "-":
		return "", `has the json tag "-"`, false
	case len(field.Names) == 1 && !field.Names[0].IsExported():
		return field.Names[0].Name, "is not exported", false
	case slices.Contains(strings.Split(options, ","), "inline"), len(field.Names) == 0 && name == "":
		return "", "", true
	case name == "" && len(field.Names) == 1:
		return field.Names[0].Name, "has no name in JSON", false
	}
	return name, "", false
}

func (r *reader) comment(group *ast.CommentGroup, c *ast.Comment) {
	text, isBlock := strings.CutPrefix(c.Text, "/*")
	if !isBlock {
		r.line(group, c.Text[2:], c.Pos()+2)
		return
	}
	at := c.Pos() + 2
	for line := range strings.Lines(strings.TrimSuffix(text, "*/")) {
		trimmed := strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t*")
		if _, found, _ := grammar.Parse(trimmed); found || grammar.Suspect(trimmed) != nil {
			r.report(at, at+token.Pos(len(line)), convention.MarkerMisplaced, "marker is in a block comment, where it has no effect", "write it on a line of its own after //")
		}
		at += token.Pos(len(line))
	}
}

func (r *reader) line(group *ast.CommentGroup, line string, at token.Pos) {
	m, found, err := grammar.Parse(line)
	var fault *grammar.Fault
	if !found {
		fault = grammar.Suspect(line)
	} else if err != nil && !errors.As(err, &fault) {
		fault = &grammar.Fault{Message: err.Error(), End: len(line)}
	}
	if fault != nil {
		r.invalid(fault, at)
		return
	}
	if !found {
		return
	}
	value := &marker{Marker: m, start: at + token.Pos(m.Offset), pos: at + token.Pos(m.ValueOffset)}
	rest := strings.TrimRight(line[m.ValueOffset:], " \t\r")
	value.end = value.pos + token.Pos(len(rest))
	if rest != "" && (rest[0] == '"' || rest[0] == '`') && m.Form == grammar.Own {
		value.quote = rest[:1]
	}
	r.give(r.owners[group], value)
}

// invalid reports a marker with a mistake, with its correction if there is one.
func (r *reader) invalid(fault *grammar.Fault, at token.Pos) {
	begin, end := at+token.Pos(fault.Offset), at+token.Pos(fault.End)
	var fixes []analysis.SuggestedFix
	if fault.Fix != "" {
		fixes = append(fixes, analysis.SuggestedFix{
			Message:   fmt.Sprintf("write %q", fault.Fix),
			TextEdits: []analysis.TextEdit{{Pos: begin, End: end, NewText: []byte(fault.Fix)}},
		})
	}
	r.diagnose(begin, end, convention.MarkerInvalid, fault.Message, fixes...)
}

// give gives a marker to its owner.
func (r *reader) give(o *owner, m *marker) {
	misplaced := func(why, cure string) {
		r.report(m.start, m.end, convention.MarkerMisplaced, fmt.Sprintf("marker %q %s", m.Key.Marker(), why), cure)
	}
	switch {
	case o == nil:
		misplaced("is not above a type or a field, so it has no effect", "put it directly above a type or a field of a struct type")
	case o.unused != "":
		misplaced(fmt.Sprintf("is above a field of %s that %s, so it has no effect", o.of.name, o.unused), "remove the marker, or give the field a line of its own, an exported name and a json tag")
	case o.inline:
		misplaced(fmt.Sprintf("is above an inline field of %s, which is no field in JSON", o.of.name), "put it above each field of the inlined type")
	case o.markers[m.Key] != nil:
		r.report(m.start, m.end, convention.MarkerTwice, fmt.Sprintf("marker %q is there twice", m.Key.Marker()), "keep one of them")
	default:
		o.markers[m.Key] = m
		r.marked = true
	}
}
