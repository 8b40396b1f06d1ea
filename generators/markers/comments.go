package markers

import (
	"cmp"
	"errors"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
)

// fileReader assigns the comments of one file to types and fields.
type fileReader struct {
	fset *token.FileSet
	file *ast.File
	into *packageMarkers
	// owners are the types and fields that a comment is about.
	owners map[*ast.CommentGroup]owner
}

// owner is a type, or with fields one or several fields of it.
type owner struct {
	of     *Type
	fields []*Field
}

func newFileReader(fset *token.FileSet, file *ast.File, into *packageMarkers) *fileReader {
	return &fileReader{fset: fset, file: file, into: into, owners: map[*ast.CommentGroup]owner{}}
}

func (r *fileReader) read() {
	end := r.file.Name.End()
	for _, decl := range r.file.Decls {
		if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
			r.types(types, end)
		}
		end = decl.End()
	}
	for _, group := range r.file.Comments {
		for _, comment := range group.List {
			r.comment(group, comment)
		}
	}
}

// types finds the comments of declared types. end is the end of what stands before the declaration.
func (r *fileReader) types(decl *ast.GenDecl, end token.Pos) {
	for _, spec := range decl.Specs {
		spec := spec.(*ast.TypeSpec)
		t := r.into.types[spec.Name.Name]
		if t == nil || t.Spec != spec {
			continue
		}
		doc, start := spec.Doc, spec.Pos()
		if !decl.Lparen.IsValid() {
			start = decl.Pos()
			if doc == nil {
				doc = decl.Doc
			}
		} else if decl.Lparen > end {
			end = decl.Lparen
		}
		t.doc = r.own(owner{of: t}, doc, end, start)
		end = spec.End()
		if structure, ok := spec.Type.(*ast.StructType); ok {
			r.fields(t, structure)
		}
	}
}

func (r *fileReader) fields(t *Type, structure *ast.StructType) {
	end := structure.Fields.Opening
	for _, node := range structure.Fields.List {
		o := owner{of: t}
		for _, f := range t.Fields {
			if f.Node == node {
				o.fields = append(o.fields, f)
			}
		}
		r.own(o, node.Doc, end, node.Pos())
		end = node.End()
	}
}

// own gives an owner its documentation and the closest comment before that, if it stands after the end of what is before. It returns where
// the first of them starts, which is start if there is none.
func (r *fileReader) own(o owner, doc *ast.CommentGroup, end, start token.Pos) token.Pos {
	if doc != nil {
		r.owners[doc] = o
		start = doc.Pos()
	}
	after, _ := slices.BinarySearchFunc(r.file.Comments, start, func(group *ast.CommentGroup, start token.Pos) int { return cmp.Compare(group.End(), start+1) })
	if after == 0 {
		return start
	}
	// A comment on the line where the one before ends is about that, and the comment of the package clause is not about the first type.
	closest := r.file.Comments[after-1]
	if closest.Pos() <= end || r.line(closest.Pos()) == r.line(end) || closest == r.file.Doc {
		return start
	}
	r.owners[closest] = o
	return closest.Pos()
}

func (r *fileReader) line(p token.Pos) int { return r.fset.Position(p).Line }

// comment reads the lines of one comment.
func (r *fileReader) comment(group *ast.CommentGroup, comment *ast.Comment) {
	text, isBlock := strings.CutPrefix(comment.Text, "/*")
	if !isBlock {
		r.markerLine(group, comment.Text[2:], comment.Pos()+2)
		return
	}
	at := comment.Pos() + 2
	for line := range strings.Lines(strings.TrimSuffix(text, "*/")) {
		r.blockLine(line, at)
		at += token.Pos(len(line))
	}
}

// blockLine refuses markers in block comments, because controller-gen does not read them there.
func (r *fileReader) blockLine(line string, at token.Pos) {
	line = strings.TrimRight(line, "\r\n")
	text := strings.TrimLeft(line, " \t*")
	line, at = text, at+token.Pos(len(line)-len(text))
	m, found, _ := grammar.Parse(line)
	switch f := grammar.Suspect(line); {
	case found:
		r.into.errs.at(r.fset.Position(at+token.Pos(m.Offset)), "marker %q is in a block comment, where it has no effect: write it on a line of its own after //", m.Key.Marker())
	case f != nil:
		r.into.errs.at(r.fset.Position(at+token.Pos(f.Offset)), "%s: and a marker in a block comment has no effect: write it on a line of its own after //", f.Message)
	}
}

func (r *fileReader) markerLine(group *ast.CommentGroup, line string, at token.Pos) {
	m, found, err := grammar.Parse(line)
	var fault *grammar.Fault
	if !found {
		fault = grammar.Suspect(line)
	} else if err != nil && !errors.As(err, &fault) {
		fault = &grammar.Fault{Message: err.Error()}
	}
	if fault != nil {
		r.into.errs = append(r.into.errs, &Error{Position: r.fset.Position(at + token.Pos(fault.Offset)), Message: fault.Message, Fix: fault.Fix})
		return
	}
	if !found {
		return
	}
	v := &Value{Marker: m, Position: r.fset.Position(at + token.Pos(m.Offset)), ValuePosition: r.fset.Position(at + token.Pos(m.ValueOffset))}
	o, owned := r.owners[group]
	if !owned {
		r.into.errs.at(v.Position, "marker %q %s, where it has no effect: put it directly above a type or a field of a struct type", m.Key.Marker(), r.place(group))
		return
	}
	v.check(&r.into.errs)
	r.give(o, v)
}

// give gives a marker to its owner.
func (r *fileReader) give(o owner, v *Value) {
	if o.fields == nil {
		o.of.Keys.add(v, &r.into.errs)
		return
	}
	if len(o.fields) > 1 {
		r.into.errs.at(v.Position, "marker %q is above %d fields that share a line: declare each field on a line of its own", v.Key.Marker(), len(o.fields))
		return
	}
	f := o.fields[0]
	if f.unused != "" {
		r.into.errs.at(v.Position, "marker %q is above a field of %s that %s, so it is not in JSON and the marker has no effect: remove the marker, or give the field an exported name and a json tag", v.Key.Marker(), o.of.Name, f.unused)
		return
	}
	if f.Inline {
		r.into.errs.at(v.Position, "marker %q is above an inline field of %s, which is no field in JSON: put the marker above each field of the inlined type, or above the type %s", v.Key.Marker(), o.of.Name, o.of.Name)
		return
	}
	f.Keys.add(v, &r.into.errs)
}

// place says where a comment is that no type or field owns.
func (r *fileReader) place(group *ast.CommentGroup) string {
	if group == r.file.Doc || group.End() < r.file.Name.End() {
		return "is above the package clause"
	}
	for _, decl := range r.file.Decls {
		contains := group.Pos() >= decl.Pos() && group.End() <= decl.End()
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if group == decl.Doc {
				return "is above a function"
			}
			if contains {
				return "is inside a function"
			}
		case *ast.GenDecl:
			if group == decl.Doc {
				return "is above a declaration that is not one type"
			}
			if contains && decl.Tok != token.TYPE {
				return "is inside a declaration that is no type"
			}
			if contains {
				return r.placeInTypes(group, decl)
			}
		}
		if group.Pos() > decl.End() && r.line(group.Pos()) == r.line(decl.End()) {
			return "is behind a declaration, on its line"
		}
	}
	return "is in a comment that is not above a type or field"
}

func (r *fileReader) placeInTypes(group *ast.CommentGroup, decl *ast.GenDecl) string {
	out := "is inside a declaration, but not above a type or field"
	ast.Inspect(decl, func(node ast.Node) bool {
		if field, ok := node.(*ast.Field); ok && group == field.Comment {
			out = "is behind a field, on its line"
		}
		if spec, ok := node.(*ast.TypeSpec); ok && group == spec.Comment {
			out = "is behind a type, on its line"
		}
		if field, ok := node.(*ast.Field); ok && group == field.Doc {
			out = "is above a field of an anonymous struct or a method"
		}
		return true
	})
	return out
}
