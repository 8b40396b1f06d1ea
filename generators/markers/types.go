package markers

import (
	"go/ast"
	"go/token"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/loader"
)

// Type is a declared Go type with its markers.
type Type struct {
	Package *loader.Package
	Name    string
	// Position is that of the name.
	Position token.Position
	// Spec is the declaration.
	Spec *ast.TypeSpec
	// Keys are the markers of the type itself.
	Keys Keys
	// Fields are all fields of a struct, in their order; nil for other types.
	Fields []*Field
	// Generated reports that the file says so ("Code generated … DO NOT EDIT."). Generators copy comments, so a marker on such a type may
	// have no effect.
	Generated bool

	// doc is the start of the declaration with its comments.
	doc token.Pos
}

// Field is one field of a struct with its markers.
type Field struct {
	// Name is the name in Go, "" for an embedded type.
	Name string
	// JSON is the name in JSON, "" if the field is inline.
	JSON string
	// Inline reports that the fields of the field's type are fields of the struct in JSON.
	Inline bool
	// Position is that of the field.
	Position token.Position
	// Node is the field in the declaration. Several fields share one if their names stand before one type.
	Node *ast.Field
	// Keys are the markers of the field itself.
	Keys Keys

	// unused says why the field is not in JSON, "" if it is.
	unused string
}

// Marked reports whether the type or one of its fields has a marker.
func (t *Type) Marked() bool {
	if len(t.Keys) > 0 {
		return true
	}
	for _, f := range t.Fields {
		if len(f.Keys) > 0 {
			return true
		}
	}
	return false
}

// newFields returns the fields of a struct as controller-gen understands their tags.
func newFields(fset *token.FileSet, node *ast.Field) []*Field {
	tag, tagged := loader.ParseAstTag(node.Tag).Lookup("json")
	options := strings.Split(tag, ",")
	base := Field{Node: node, Position: fset.Position(node.Pos()), JSON: options[0]}
	for _, option := range options[1:] {
		base.Inline = base.Inline || option == "inline"
	}
	base.Inline = base.Inline || base.JSON == ""
	if base.Inline {
		base.JSON = ""
	}
	switch {
	case !tagged:
		base.unused = "has no json tag"
	case tag == "-":
		base.unused = `has the tag json:"-"`
	}
	if len(node.Names) == 0 {
		return []*Field{&base}
	}
	var out []*Field
	for _, name := range node.Names {
		f := base
		f.Name = name.Name
		if f.unused == "" && !f.Inline && !ast.IsExported(name.Name) {
			f.unused = "is not exported"
		}
		out = append(out, &f)
	}
	return out
}
