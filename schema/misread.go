package schema

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// A condition reads a field by its exact name. The controller that reads the object later may also take the value from another name, because it
// ignores the case of names. Where the API server knows the type, it drops such a name.

// Misread reports whether a condition of the permission may miss a field of a decoded value of the node, because the value has it under
// another name. Such a condition counts as true.
func (n *Node) Misread(p *Permission, value any) bool {
	return p.Conditional() && len(p.names) > 0 && n.misread(p.names, value)
}

func (n *Node) misread(names []string, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		m := n.mapping
		if m == nil {
			m = unknown.mapping
		}
		for key, below := range value {
			if slices.ContainsFunc(names, func(name string) bool {
				return m.spells(key, name)
			}) {
				return true
			}
			if m.Child(key).misread(names, below) {
				return true
			}
		}
	case []any:
		item := unknown
		if n.list != nil {
			item = n.list.item
		}
		return slices.ContainsFunc(value, func(below any) bool { return item.misread(names, below) })
	}
	return false
}

// spells reports whether a key is another spelling of the name of a field.
func (m *Map) spells(key, name string) bool {
	return m.folds && key != name && strings.EqualFold(key, name) && !m.IsField(key)
}

// namesRead returns the names of fields that an expression may read: what it selects, and every text in it.
func namesRead(ast *cel.Ast) []string {
	var out []string
	for _, e := range celast.MatchDescendants(celast.NavigateAST(ast.NativeRep()), celast.AllMatcher()) {
		if e.Kind() == celast.SelectKind {
			out = append(out, e.AsSelect().FieldName())
		}
		if e.Kind() != celast.LiteralKind {
			continue
		}
		if text, ok := e.AsLiteral().(types.String); ok {
			out = append(out, string(text))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
