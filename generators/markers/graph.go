package markers

import (
	"go/ast"
	"go/token"
	"go/types"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/loader"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
)

// graph holds the types that kinds consist of.
type graph struct {
	set *Set
	// parser knows the kinds, and the types whose schemas controller-gen has built in.
	parser *crd.Parser
	// uses are the types that each type names. Its keys are all types that were reached.
	uses map[*Type][]*Type
	// marked are the types that have a marker or that reach a type with one.
	marked map[*Type]bool
}

func newGraph(set *Set, parser *crd.Parser) *graph {
	return &graph{set: set, parser: parser, uses: map[*Type][]*Type{}, marked: map[*Type]bool{}}
}

// reach adds a type and everything that it uses.
func (g *graph) reach(root *Type) {
	users := map[*Type][]*Type{}
	queue := []*Type{root}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		if _, done := g.uses[t]; done {
			continue
		}
		g.uses[t] = g.named(t)
		queue = append(queue, g.uses[t]...)
	}
	for t, used := range g.uses {
		for _, u := range used {
			users[u] = append(users[u], t)
		}
	}
	for t := range g.uses {
		if t.Marked() {
			g.mark(t, users)
		}
	}
}

func (g *graph) mark(t *Type, users map[*Type][]*Type) {
	if g.marked[t] {
		return
	}
	g.marked[t] = true
	for _, user := range users[t] {
		g.mark(user, users)
	}
}

// recursion returns the position of a type that contains itself, or that of root if there is none.
func (g *graph) recursion(root *Type) token.Position {
	onPath, done := map[*Type]bool{}, map[*Type]bool{}
	var find func(t *Type) *Type
	find = func(t *Type) *Type {
		if onPath[t] {
			return t
		}
		if done[t] {
			return nil
		}
		onPath[t], done[t] = true, true
		defer delete(onPath, t)
		for _, used := range g.uses[t] {
			if found := find(used); found != nil {
				return found
			}
		}
		return nil
	}
	if t := find(root); t != nil {
		return t.Position
	}
	return root.Position
}

// named returns the types that a declaration names, except in fields that are not in JSON.
func (g *graph) named(t *Type) []*Type {
	var out []*Type
	find := func(expr ast.Expr) {
		ast.Inspect(expr, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.Ident, *ast.SelectorExpr:
				if used := g.resolve(t.Package, node.(ast.Expr)); used != nil {
					out = append(out, used)
				}
				return false
			case *ast.Field:
				return false
			}
			return true
		})
	}
	find(t.Spec.Type)
	for _, f := range t.Fields {
		if f.unused == "" {
			find(f.Node.Type)
		}
	}
	return out
}

// resolve returns the declared type that a name stands for, nil if there is none: for basic types, type parameters, types whose schema is
// built into controller-gen, and types that do not compile.
func (g *graph) resolve(p *loader.Package, name ast.Expr) *Type {
	var object *types.TypeName
	switch found := p.TypesInfo.TypeOf(name).(type) {
	case *types.Named:
		object = found.Obj()
	case *types.Alias:
		object = found.Obj()
	}
	if object == nil || object.Pkg() == nil {
		return nil
	}
	in := p
	if path := loader.NonVendorPath(object.Pkg().Path()); path != loader.NonVendorPath(p.PkgPath) {
		if in = imported(p, path); in == nil {
			return nil
		}
	}
	g.parser.NeedPackage(in)
	if _, builtIn := g.parser.Schemata[crd.TypeIdent{Package: in, Name: object.Name()}]; builtIn {
		return nil
	}
	return g.set.Type(in, object.Name())
}

// imported finds a package among those that a package imports, directly or not.
func imported(from *loader.Package, path string) *loader.Package {
	if direct := from.Imports()[path]; direct != nil {
		return direct
	}
	seen := map[*loader.Package]bool{from: true}
	for queue := []*loader.Package{from}; len(queue) > 0; queue = queue[1:] {
		for name, p := range queue[0].Imports() {
			if loader.NonVendorPath(name) == path {
				return p
			}
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return nil
}

// below is a marker that applies to a node of a type expression: at the node itself, or at items and values below it.
type below struct {
	path  string
	value *Value
}

// mapKeys returns the parameter sources of the types of map keys in a type expression, with the paths of their maps. The map is the node
// that has them, because keys are no nodes.
func (g *graph) mapKeys(p *loader.Package, expr ast.Expr) []below {
	var out []below
	for path := ""; ; {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.ArrayType:
			expr, path = e.Elt, path+anyItem
		case *ast.MapType:
			for _, v := range g.chain(p, e.Key) {
				if v.Key == grammar.Source {
					out = append(out, below{path, v})
				}
			}
			expr, path = e.Value, path+anyItem
		default:
			return out
		}
	}
}

// anyItem is the path from a list or map to its items or values.
const anyItem = "[*]"

// chain returns the markers of a named type and of the named types that it is declared as, merged.
func (g *graph) chain(p *loader.Package, name ast.Expr) Keys {
	var chain []Keys
	seen := map[*Type]bool{}
	for t := g.resolve(p, name); t != nil && !seen[t]; t = g.resolve(p, name) {
		seen[t] = true
		chain = append(chain, t.Keys)
		p, name = t.Package, t.Spec.Type
	}
	return merge(chain)
}

// merge combines the markers of a node, those of the field first.
func merge(chain []Keys) Keys {
	var out Keys
	for i := len(chain) - 1; i >= 0; i-- {
		out = Override(out, chain[i])
	}
	return out
}
