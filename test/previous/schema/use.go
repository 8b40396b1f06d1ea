package schema

import (
	"slices"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// use is a part of its value that a condition uses.
type use struct {
	path fieldpath.Pattern
	// exists means that the condition only asks whether the part is there: by has(), or by a comparison with null.
	exists bool
}

// usesOf returns what an expression uses of the variables. It follows the variables of loops. Where it cannot follow, the whole is used.
func usesOf(ast *cel.Ast, variables ...string) []use {
	var out []use
	for _, e := range identifiers(ast, variables...) {
		out = follow(out, e, nil)
	}
	return out
}

// follow adds what an expression is used for, which is the value at a path.
func follow(out []use, e celast.NavigableExpr, at fieldpath.Pattern) []use {
	for {
		parent, ok := e.Parent()
		if !ok {
			return append(out, use{path: at})
		}
		switch parent.Kind() {
		case celast.SelectKind:
			at = at.Child(fieldpath.Element{Name: parent.AsSelect().FieldName()})
			if parent.AsSelect().IsTestOnly() {
				return append(out, use{at, true})
			}
		case celast.CallKind:
			if comparesWithNull(parent.AsCall()) {
				return append(out, use{at, true})
			}
			step, is := stepOf(parent.AsCall(), e)
			if !is {
				return append(out, use{path: at})
			}
			at = at.Child(step)
		case celast.ComprehensionKind:
			loop := parent.AsComprehension()
			if loop.IterRange().ID() != e.ID() {
				return append(out, use{path: at})
			}
			before := len(out)
			for _, item := range mentions(variablesOf(loop), parent.Children()[1:]) {
				out = follow(out, item, at.Child(fieldpath.Element{Any: true}))
			}
			if len(out) == before {
				out = append(out, use{path: at}) // The loop uses how many there are.
			}
			return out
		default:
			return append(out, use{path: at})
		}
		e = parent
	}
}

// variablesOf returns the names of the variables of a loop.
func variablesOf(loop celast.ComprehensionExpr) []string {
	if loop.HasIterVar2() {
		return []string{loop.IterVar(), loop.IterVar2()}
	}
	return []string{loop.IterVar()}
}

// mentions returns the identifiers in expressions that mean one of the variables. In the body of an inner loop, but not in its range, the
// variables of that loop hide those of the same name. Without that, a name that two loops have would lead from the inner one to itself.
func mentions(variables []string, in []celast.NavigableExpr) []celast.NavigableExpr {
	var out []celast.NavigableExpr
	for _, e := range in {
		switch e.Kind() {
		case celast.IdentKind:
			if slices.Contains(variables, e.AsIdent()) {
				out = append(out, e)
			}
		case celast.ComprehensionKind:
			parts, own := e.Children(), variablesOf(e.AsComprehension())
			visible := slices.DeleteFunc(slices.Clone(variables), func(name string) bool { return slices.Contains(own, name) })
			out = append(append(out, mentions(variables, parts[:1])...), mentions(visible, parts[1:])...)
		default:
			out = append(out, mentions(variables, e.Children())...)
		}
	}
	return out
}

// comparesWithNull reports whether a call compares its other argument with null.
func comparesWithNull(call celast.CallExpr) bool {
	return (call.FunctionName() == operators.Equals || call.FunctionName() == operators.NotEquals) && slices.ContainsFunc(call.Args(), func(e celast.Expr) bool {
		return e.Kind() == celast.LiteralKind && e.AsLiteral() == types.NullValue
	})
}

// stepOf returns the step of a call that selects a part of its first argument, which is e.
func stepOf(call celast.CallExpr, e celast.NavigableExpr) (fieldpath.Element, bool) {
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
	default:
		return fieldpath.Element{}, false
	}
	if call.Args()[0].ID() != e.ID() {
		return fieldpath.Element{}, false
	}
	if key := call.Args()[1]; key.Kind() == celast.LiteralKind {
		if name, is := key.AsLiteral().(types.String); is {
			return fieldpath.Element{Name: string(name)}, true
		}
	}
	return fieldpath.Element{Any: true}, true
}

// sees reports whether the use may notice that a field appears or changes. isItem means that the item of the innermost list that the field is in may
// appear too.
func (u use) sees(field fieldpath.Pattern, isItem bool) bool {
	for i := range min(len(u.path), len(field)) {
		if a, b := u.path[i], field[i]; !a.Any && !b.Any && !isSameKey(a.Name, b.Name) {
			return false
		}
	}
	// A field in an item of a list does not bring the list into being.
	isOfItem := func(e fieldpath.Element) bool { return e.Any }
	for end := len(field); isItem && end > 0; end-- {
		if isOfItem(field[end-1]) {
			field, isItem = field[:end-1], false
		}
	}
	return !u.exists || len(u.path) >= len(field) || !slices.ContainsFunc(field[len(u.path):], isOfItem)
}

// isShown reports whether a decoded value has the part in a form that stays if the API server adds what is absent: for a condition that asks whether
// the part is there, anything that is not empty; for one that reads it, a scalar that is not empty. Each of some items has to have it.
func (u use) isShown(value any) bool {
	for i, step := range u.path {
		if items, is := value.([]any); is && step.Any {
			isMissed := func(item any) bool { return !use{u.path[i+1:], u.exists}.isShown(item) }
			return len(items) > 0 && !slices.ContainsFunc(items, isMissed)
		}
		fields, is := value.(map[string]any)
		if !is || step.Any {
			return false
		}
		value = fields[step.Name]
	}
	switch value := value.(type) {
	case map[string]any:
		return u.exists && len(value) > 0
	case []any:
		return u.exists && len(value) > 0
	case string:
		return value != ""
	case bool:
		return value
	case int64:
		return value != 0
	case float64:
		return value != 0
	}
	return false
}
