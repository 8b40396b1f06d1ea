package openapi

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"sigs.k8s.io/controller-tools/pkg/loader"

	"github.com/fieldperm/fieldperm/generators/markers"
)

// Permission has the keys of one place of a definition.
type Permission struct {
	// Names are the names that the definition may have: the model name of the type, if its package has one, and the name of the Go type.
	Names []string
	// Path leads to the place, in keywords of OpenAPI: "properties", "beer". It is empty for the definition itself.
	Path []string
	// Keys are the keys with their values.
	Keys map[string]string
}

// walker collects permissions.
type walker struct {
	set  *markers.Set
	errs []*markers.Error
	out  []Permission
	// used are the markers that have an effect.
	used map[*markers.Value]bool
	// packages are all packages by their path.
	packages map[string]*loader.Package
	roots    map[*loader.Package]bool
	// reached are all types that were looked up.
	reached map[*markers.Type]bool
	// visited are the types of other packages that were looked at.
	visited map[*markers.Type]bool
}

// Permissions returns the keys for all definitions of the types of the set's packages, in the order of the packages and types. The errors
// are *markers.Error, for each marker that has no effect.
func Permissions(set *markers.Set) ([]Permission, []error) {
	w := &walker{
		set: set, used: map[*markers.Value]bool{}, packages: map[string]*loader.Package{}, roots: map[*loader.Package]bool{}, reached: map[*markers.Type]bool{}, visited: map[*markers.Type]bool{},
	}
	for _, root := range set.Roots {
		w.roots[root] = true
		w.learn(root)
	}
	for _, root := range set.Roots {
		root.NeedTypesInfo()
		var names []string
		loader.EachType(root, func(_ *ast.File, _ *ast.GenDecl, spec *ast.TypeSpec) { names = append(names, spec.Name.Name) })
		slices.Sort(names)
		for _, name := range names {
			if t := set.Type(root, name); t != nil {
				w.definition(t)
			}
		}
	}
	w.unused()
	w.errs = append(w.errs, set.ErrorsBeside(maps.Keys(w.reached))...)
	slices.SortStableFunc(w.errs, func(a, b *markers.Error) int {
		return cmp.Or(cmp.Compare(a.Position.Filename, b.Position.Filename), cmp.Compare(a.Position.Offset, b.Position.Offset))
	})
	var errs []error
	for i, e := range w.errs {
		if i == 0 || e.Error() != w.errs[i-1].Error() {
			errs = append(errs, e)
		}
	}
	return w.out, errs
}

// learn records a package and all that it imports.
func (w *walker) learn(p *loader.Package) {
	if w.packages[p.PkgPath] != nil {
		return
	}
	w.packages[p.PkgPath] = p
	for _, path := range slices.Sorted(maps.Keys(p.Imports())) {
		w.learn(p.Imports()[path])
	}
}

func (w *walker) fail(at token.Position, format string, args ...any) {
	w.errs = append(w.errs, &markers.Error{Position: at, Message: fmt.Sprintf(format, args...)})
}

// typeOf returns the declaration of a named type, nil if it is not in a package that was loaded.
func (w *walker) typeOf(object *types.TypeName) *markers.Type {
	if object.Pkg() == nil {
		return nil
	}
	p := w.packages[object.Pkg().Path()]
	if p == nil {
		return nil
	}
	t := w.set.Type(p, object.Name())
	if t != nil {
		w.reached[t] = true
	}
	return t
}

// definition adds the keys of one type that may have a definition.
func (w *walker) definition(t *markers.Type) {
	object, ok := t.Package.Types.Scope().Lookup(t.Name).(*types.TypeName)
	if !ok || !ast.IsExported(t.Name) || object.IsAlias() {
		return
	}
	if _, isStruct := object.Type().Underlying().(*types.Struct); !isStruct || !hasDefinition(t) {
		return
	}
	if named, ok := object.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
		return
	}
	names := definitionNames(t)
	chain, fields := w.declared(t)
	w.add(names, nil, chain)
	w.fields(names, t, fields)
}

// declared returns the markers of a struct type and its fields: those of its own declaration, or of the type that it is declared from.
func (w *walker) declared(t *markers.Type) (markers.Keys, *markers.Type) {
	keys := t.Keys
	for range 100 {
		from, ok := types.Unalias(t.Package.TypesInfo.TypeOf(t.Spec.Type)).(*types.Named)
		if !ok {
			break
		}
		next := w.typeOf(from.Obj())
		if next == nil {
			break
		}
		if field, of := markers.Weakens(next.Keys, keys); field != nil {
			w.fail(field.ValuePosition, "%s", markers.WeakensMessage(field, of))
		}
		t, keys = next, markers.Override(next.Keys, keys)
	}
	return keys, t
}

// fields adds the keys of the fields of a struct, and of the structs that are inline in it, to a definition.
func (w *walker) fields(names []string, of, structure *markers.Type) {
	for _, f := range structure.Fields {
		t := structure.Package.TypesInfo.TypeOf(f.Node.Type)
		switch {
		case t == nil:
		case f.Inline:
			w.inline(names, of, f, t)
		case f.JSON != "" && f.JSON != "-":
			w.place(names, []string{"properties", f.JSON}, t, f.Keys, f, nil)
		}
	}
}

// inline adds the fields of an embedded struct. Its type has no place of its own in the definition.
func (w *walker) inline(names []string, of *markers.Type, f *markers.Field, t types.Type) {
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return
	}
	structure := w.typeOf(named.Obj())
	if structure == nil {
		return
	}
	if w.generic(named, f) {
		return
	}
	keys, declared := w.declared(structure)
	for _, v := range keys {
		w.fail(v.Position, "marker %q is above the type %s, which is inline in %s at %s and is no field there: put the marker above the fields of %s, or above %s", v.Key.Marker(), structure.Name, of.Name, f.Position, structure.Name, of.Name)
	}
	if len(f.Node.Names) == 0 {
		w.fields(names, of, declared)
	}
}

// place adds the keys of a value: its own, and those of the named types that have no definition. chain are the types on the way, because a
// type may contain itself.
func (w *walker) place(names, path []string, t types.Type, keys markers.Keys, f *markers.Field, chain []*types.TypeName) {
	keys, t, chain, ok := w.unname(t, keys, f, chain)
	if !ok {
		return
	}
	switch t := t.(type) {
	case *types.Slice:
		w.add(names, path, keys)
		w.place(names, append(slices.Clone(path), "items"), t.Elem(), nil, f, chain)
	case *types.Array:
		w.add(names, path, keys)
		w.place(names, append(slices.Clone(path), "items"), t.Elem(), nil, f, chain)
	case *types.Map:
		// The keys of a map are no place of their own, so the markers of their type are those of the map, as in KEP-3617's example.
		of, _, _, ok := w.unname(t.Key(), nil, f, chain)
		if !ok {
			return
		}
		w.add(names, path, markers.Override(of, keys))
		w.place(names, append(slices.Clone(path), "additionalProperties"), t.Elem(), nil, f, chain)
	default:
		w.add(names, path, keys)
	}
}

// unname follows pointers, aliases and named types that are not structs, and adds their markers to keys. It returns false after an error.
func (w *walker) unname(t types.Type, keys markers.Keys, f *markers.Field, chain []*types.TypeName) (markers.Keys, types.Type, []*types.TypeName, bool) {
	for {
		var object *types.TypeName
		var next types.Type
		switch t := t.(type) {
		case *types.Pointer:
			next = t.Elem()
		case *types.Alias:
			object, next = t.Obj(), t.Rhs()
		case *types.Named:
			if w.generic(t, f) {
				return nil, nil, nil, false
			}
			object, next = t.Obj(), t.Underlying()
			if _, isStruct := next.(*types.Struct); isStruct {
				w.foreign(t, f)
				return keys, t, chain, true
			}
			if declared := w.typeOf(object); declared != nil && declared.Package.TypesInfo != nil {
				// The underlying type would skip the named types on the way to it.
				if from := declared.Package.TypesInfo.TypeOf(declared.Spec.Type); from != nil {
					next = from
				}
			}
		default:
			return keys, t, chain, true
		}
		if object != nil {
			if slices.Contains(chain, object) {
				w.fail(f.Position, "field %q has the type %s, which contains itself and is no struct: openapi-gen cannot describe it: make it a struct", fieldName(f), object.Name())
				return nil, nil, nil, false
			}
			chain = append(slices.Clone(chain), object)
			if declared := w.typeOf(object); declared != nil {
				// A marker that the field replaces has an effect too: elsewhere, or none that is lost.
				for _, v := range declared.Keys {
					w.used[v] = true
				}
				if field, of := markers.Weakens(declared.Keys, keys); field != nil {
					w.fail(field.ValuePosition, "%s", markers.WeakensMessage(field, of))
				}
				keys = markers.Override(declared.Keys, keys)
			}
		}
		t = next
	}
}

func fieldName(f *markers.Field) string { return cmp.Or(f.JSON, f.Name) }

// generic reports whether a type has parameters and markers, which is an error: openapi-gen gives each instance a definition of its own.
func (w *walker) generic(t *types.Named, f *markers.Field) bool {
	if t.TypeArgs().Len() == 0 {
		return false
	}
	marked := func(t types.Type) bool {
		named, ok := types.Unalias(t).(*types.Named)
		declared := (*markers.Type)(nil)
		if ok {
			declared = w.typeOf(named.Obj())
		}
		return declared != nil && declared.Marked()
	}
	found := marked(t)
	for i := range t.TypeArgs().Len() {
		found = found || marked(t.TypeArgs().At(i))
	}
	if found {
		w.fail(f.Position, "field %q has the generic type %s, and it or an argument has permission markers: declare a type without parameters for it", fieldName(f), t.Obj().Name())
	}
	return found
}

// foreign looks at a struct of a package that is not among the roots. Its definition comes from elsewhere, so its markers would be lost.
func (w *walker) foreign(t *types.Named, f *markers.Field) {
	declared := w.typeOf(t.Obj())
	if declared == nil || w.roots[declared.Package] || w.visited[declared] {
		return
	}
	w.visited[declared] = true
	if declared.Marked() {
		w.fail(f.Position, "field %q has the type %s of the package %q, which has permission markers and is not among the paths: add the package to them", fieldName(f), declared.Name, declared.Package.PkgPath)
		return
	}
	structure, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i := range structure.NumFields() {
		w.beneath(structure.Field(i).Type(), f, 0)
	}
}

// beneath looks for structs in the type of a field of another package.
func (w *walker) beneath(t types.Type, f *markers.Field, depth int) {
	if depth > 100 {
		return
	}
	switch t := t.(type) {
	case *types.Alias:
		w.hidden(w.typeOf(t.Obj()), f)
		w.beneath(t.Rhs(), f, depth+1)
	case *types.Pointer:
		w.beneath(t.Elem(), f, depth+1)
	case *types.Slice:
		w.beneath(t.Elem(), f, depth+1)
	case *types.Array:
		w.beneath(t.Elem(), f, depth+1)
	case *types.Map:
		w.beneath(t.Key(), f, depth+1)
		w.beneath(t.Elem(), f, depth+1)
	case *types.Struct:
		for i := range t.NumFields() {
			w.beneath(t.Field(i).Type(), f, depth+1)
		}
	case *types.Named:
		if _, isStruct := t.Underlying().(*types.Struct); isStruct {
			w.foreign(t, f)
			return
		}
		if w.hidden(w.typeOf(t.Obj()), f) {
			w.beneath(t.Underlying(), f, depth+1)
		}
	}
}

// hidden refuses the markers of a type in a struct of another package. It reports whether the type has not been looked at before.
func (w *walker) hidden(declared *markers.Type, f *markers.Field) bool {
	if declared == nil || w.roots[declared.Package] || w.visited[declared] {
		return false
	}
	w.visited[declared] = true
	if len(declared.Keys) > 0 {
		w.fail(f.Position, "field %q contains the type %s of the package %q, which has permission markers and is not among the paths: add the package to them", fieldName(f), declared.Name, declared.Package.PkgPath)
	}
	return true
}

// add adds the keys of one place.
func (w *walker) add(names, path []string, keys markers.Keys) {
	if len(keys) == 0 {
		return
	}
	p := Permission{Names: names, Path: path, Keys: map[string]string{}}
	for _, v := range keys {
		p.Keys[v.Key.Extension()] = v.Value
		w.used[v] = true
	}
	w.out = append(w.out, p)
}

// unused reports the markers of the roots that are in no definition.
func (w *walker) unused() {
	for _, t := range w.set.Types() {
		report := func(keys markers.Keys) {
			for _, v := range keys {
				if !w.used[v] {
					w.fail(v.Position, "marker %q of %s is in no OpenAPI definition: %s", v.Key.Marker(), t.Name, why(t))
				}
			}
		}
		report(t.Keys)
		for _, f := range t.Fields {
			report(f.Keys)
		}
	}
}

func why(t *markers.Type) string {
	_, isStruct := t.Spec.Type.(*ast.StructType)
	switch {
	case t.Spec.TypeParams != nil:
		return "a generic type has none: declare a type without parameters"
	case isStruct && !ast.IsExported(t.Name):
		return "a type that is not exported has none: export it, or remove the marker"
	case isStruct && !hasDefinition(t):
		return "openapi-gen makes none: put +" + openAPITag + "=true above the type, or above the package clause"
	}
	return "no field of a type with a definition has the type: remove the marker"
}
