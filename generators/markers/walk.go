package markers

import (
	"go/ast"
	"go/token"
	"slices"

	"sigs.k8s.io/controller-tools/pkg/loader"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// place is a node of a kind's schema that has markers.
type place struct {
	// all are the markers of the field and of its types.
	all Keys
	// merged are those that count.
	merged Keys
}

// walk finds the places of the markers in one version of a kind. It follows the types as controller-gen does. What controller-gen makes of
// them is compared with the result afterwards, so that a marker which lands nowhere is found.
type walk struct {
	*graph
	places map[string]*place
	errs   *mistakes
	// stack are the types above the current place.
	stack []*Type
	// at is the field that the walk is in.
	at token.Position
}

func (g *graph) walk(root *Type, errs *mistakes) map[string]*place {
	w := &walk{graph: g, places: map[string]*place{}, errs: errs, at: root.Position}
	w.declared(root, "", nil)
	return w.places
}

// declared visits a value of a declared type. outer are the markers of the field and of the types that are declared as this one.
func (w *walk) declared(t *Type, path string, outer []Keys) {
	chain := append(slices.Clip(outer), t.Keys)
	if !w.marked[t] {
		w.node(path, outer)
		return
	}
	if slices.Contains(w.stack, t) {
		w.errs.at(w.at, "type %s contains itself at %q, and a CustomResourceDefinition cannot have a recursive schema with permission markers: end the recursion with a field of type apiextensionsv1.JSON", t.Name, path)
		return
	}
	w.stack = append(w.stack, t)
	defer func() { w.stack = w.stack[:len(w.stack)-1] }()
	if t.Fields != nil {
		w.node(path, chain)
		w.fields(t, path)
		return
	}
	w.expr(t.Package, t.Spec.Type, path, chain)
}

func (w *walk) expr(p *loader.Package, expr ast.Expr, path string, outer []Keys) {
	switch e := expr.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		if t := w.resolve(p, expr); t != nil {
			w.declared(t, path, outer)
			return
		}
		w.node(path, outer)
	case *ast.StarExpr:
		w.expr(p, e.X, path, outer)
	case *ast.ArrayType:
		w.node(path, outer)
		w.expr(p, e.Elt, path+anyItem, nil)
	case *ast.MapType:
		w.node(path, append(slices.Clip(outer), w.key(p, e.Key)))
		w.expr(p, e.Value, path+anyItem, nil)
	case *ast.IndexExpr:
		w.generic(p, e.X, []ast.Expr{e.Index}, e.Pos())
		w.node(path, outer)
	case *ast.IndexListExpr:
		w.generic(p, e.X, e.Indices, e.Pos())
		w.node(path, outer)
	default:
		w.node(path, outer)
	}
}

// key returns the markers of a map that come from the type of its keys.
func (w *walk) key(p *loader.Package, name ast.Expr) Keys {
	var out Keys
	for _, v := range w.chain(p, name) {
		if v.Key == grammar.Source {
			out = append(out, v)
			continue
		}
		w.errs.at(v.Position, "marker %q is above the type of a map's keys (%s), and keys are no fields: put it above the map or the type of its values; a type of keys takes %s only", v.Key.Marker(), w.at, grammar.Source.Marker())
	}
	return out
}

// generic refuses generic types with markers. controller-gen has no schemas for generic types.
func (w *walk) generic(p *loader.Package, name ast.Expr, arguments []ast.Expr, pos token.Pos) {
	for _, part := range append([]ast.Expr{name}, arguments...) {
		if t := w.resolve(p, part); t != nil && w.marked[t] {
			w.errs.at(p.Fset.Position(pos), "generic type %s has permission markers, and controller-gen has no schema for a generic type: declare a type without parameters", t.Name)
			return
		}
	}
}

func (w *walk) fields(t *Type, path string) {
	before := w.at
	defer func() { w.at = before }()
	for _, f := range t.Fields {
		w.at = f.Position
		switch {
		case f.unused != "":
		case f.Inline:
			w.inline(t, f, path)
		default:
			w.expr(t.Package, f.Node.Type, fieldpath.Extend(path, f.JSON), []Keys{f.Keys})
		}
	}
}

// inline visits the fields of a type that is inlined. Markers of the type itself are refused: the type is no node there. On the struct
// around it a verb would cover more than the type, and on each field it would not be above the field's own verb.
func (w *walk) inline(in *Type, f *Field, path string) {
	expr := f.Node.Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	p := in.Package
	for depth := 0; ; depth++ {
		switch e := expr.(type) {
		case *ast.Ident, *ast.SelectorExpr:
			t := w.resolve(p, expr)
			if t == nil || !w.marked[t] {
				return
			}
			if slices.Contains(w.stack, t) || depth > len(w.uses) {
				w.errs.at(f.Position, "type %s contains itself inline: remove the field", t.Name)
				return
			}
			w.refuseInline(t.Keys, "above type "+t.Name, in, f)
			if t.Fields != nil {
				w.stack = append(w.stack, t)
				w.fields(t, path)
				w.stack = w.stack[:len(w.stack)-1]
				return
			}
			p, expr = t.Package, t.Spec.Type
		case *ast.MapType:
			w.inlineMap(p, e, in, f)
			return
		case *ast.IndexExpr:
			w.generic(p, e.X, []ast.Expr{e.Index}, e.Pos())
			return
		case *ast.IndexListExpr:
			w.generic(p, e.X, e.Indices, e.Pos())
			return
		default:
			return
		}
	}
}

// inlineMap refuses markers of the keys and values of an inline map. An API server refuses a schema that has both fields and values of a map.
func (w *walk) inlineMap(p *loader.Package, e *ast.MapType, in *Type, f *Field) {
	w.refuseInline(w.key(p, e.Key), "above the type of the keys of a map", in, f)
	before := len(w.places)
	w.expr(p, e.Value, anyItem, nil)
	if len(w.places) > before {
		w.errs.at(f.Position, "field of type %s is an inline map whose values have permission markers, and an API server refuses a schema with fields beside the values of a map: give the map a name in its json tag", in.Name)
	}
}

func (w *walk) refuseInline(keys Keys, what string, in *Type, f *Field) {
	for _, v := range keys {
		w.errs.at(v.Position, "marker %q is %s, which is inline in type %s at %s and so no field of its own there: put the marker above each field instead, or above type %s", v.Key.Marker(), what, in.Name, f.Position, in.Name)
	}
}

// node records the markers of a node.
func (w *walk) node(path string, chain []Keys) {
	var all Keys
	for _, keys := range chain {
		all = append(all, keys...)
	}
	if len(all) == 0 {
		return
	}
	for i := range chain {
		for _, inner := range chain[i+1:] {
			if field, of := Weakens(inner, chain[i]); field != nil {
				w.errs.at(field.ValuePosition, "%s", WeakensMessage(field, of))
			}
		}
	}
	if first, known := w.places[path]; known {
		w.errs.at(w.at, "field %q has markers here and at %s, because an inlined type has a field of that name: rename one of them", path, first.all[0].Position)
		return
	}
	w.places[path] = &place{all: all, merged: merge(chain)}
}
