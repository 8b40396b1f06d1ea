package configfile

import (
	"fmt"
	"maps"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	celoperators "github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// checkMappings reports the mappings that compile and then refuse tokens, whatever is in them. k8s.io/apiserver accepts every type
// when it compiles a mapping, and accepts fewer when it evaluates one.
func (r *reading) checkMappings(compiler authenticationcel.Compiler, configuration *apiserver.AuthenticationConfiguration) {
	for i := range configuration.JWT {
		at := child(item("jwt", i), "claimMappings")
		m := &configuration.JWT[i].ClaimMappings
		r.checkMapping(compiler, child(at, "username.expression"), m.Username.Expression, oneText)
		r.checkMapping(compiler, child(at, "groups.expression"), m.Groups.Expression, texts)
		r.checkMapping(compiler, child(at, "uid.expression"), m.UID.Expression, oneText)
		for n := range m.Extra {
			r.checkMapping(compiler, child(item(child(at, "extra"), n), "valueExpression"), m.Extra[n].ValueExpression, texts)
		}
	}
}

// result is what a mapping must yield.
type result struct {
	description string
	list        bool
}

var (
	oneText = result{"a string", false}
	texts   = result{"a string or a list of strings", true}
)

// fits reports whether a type can be accepted. The type of a claim is dyn: it depends on the token.
func (w result) fits(t *types.Type) bool {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.StringKind:
		return true
	case types.NullTypeKind:
		return w.list
	case types.ListKind:
		return w.list && isText(t.Parameters()[0])
	default:
		return false
	}
}

// isText reports whether an item of a list may be a string.
func isText(t *types.Type) bool {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.StringKind, types.TypeParamKind:
		return true
	default:
		return false
	}
}

func (r *reading) checkMapping(compiler authenticationcel.Compiler, path, expression string, want result) {
	if expression == "" {
		return
	}
	compiled, err := compiler.CompileClaimsExpression(&authenticationcel.ClaimMappingExpression{Expression: expression})
	if err != nil {
		return // Validation has reported it.
	}
	if t := compiled.AST.OutputType(); !want.fits(t) {
		cure := "convert it with string(…)"
		switch {
		case t.Kind() == types.OpaqueKind:
			cure = "append .orValue('')"
		case t.Kind() == types.BoolKind:
			cure = "write CONDITION ? 'a text' : ''"
		case t.Kind() == types.ListKind && !want.list:
			cure = "take one item, for example the first: append [0]"
		}
		r.report(path, fmt.Sprintf("%s refuses every token: it yields %s, must yield %s", quoted(expression), t, want.description), cure)
		return
	}
	if !want.list {
		return
	}
	source, root := nativeListsOf(compiled.AST)
	if source == nil {
		return
	}
	name := source.AsCall().FunctionName()
	r.report(path, fmt.Sprintf("%s refuses tokens: k8s.io/apiserver does not accept a list of %s that is not mapped", quoted(expression), name), mapped(compiler, expression, compiled.AST.OutputType().Kind() == types.ListKind, root, source))
}

// mapped returns the cure for a list that is not accepted: mapping it yields a list that is. list means that the
// expression yields nothing else.
func mapped(compiler authenticationcel.Compiler, expression string, list bool, root, source ast.Expr) string {
	own := fmt.Sprintf("append .map(g, g) to %s(…)", source.AsCall().FunctionName())
	better := "(" + expression + ").map(g, g)"
	switch {
	case root.ID() == source.ID():
		better = expression + ".map(g, g)"
	case !list:
		return own // It may yield a string too.
	}
	if compiled, err := compiler.CompileClaimsExpression(&authenticationcel.ClaimMappingExpression{Expression: better}); err == nil {
		if again, _ := nativeListsOf(compiled.AST); again == nil {
			return "write " + better
		}
	}
	return own
}

// nativeLists finds lists that are Go's []string. k8s.io/apiserver refuses them as groups and as extra. Lists of claims, literals and
// the results of map and filter are of other types.
//
// An operator passes such a list on if it returns an operand as it is. That includes +: it returns one operand if the other is empty.
type nativeLists struct {
	typeOf func(id int64) *types.Type
	// bound are the variables of optMap whose value is such a list.
	bound map[string]ast.Expr
}

func nativeListsOf(compiled *celgo.Ast) (found, root ast.Expr) {
	checked := compiled.NativeRep()
	return nativeLists{typeOf: checked.GetType}.in(checked.Expr()), checked.Expr()
}

// sources are the functions of Kubernetes' CEL that return []string, also inside a map or an optional.
var sources = map[string]bool{"split": true, "findAll": true, "validate": true, "getQuery": true}

// in returns the call whose list an expression may yield unchanged, nil if there is none.
func (n nativeLists) in(e ast.Expr) ast.Expr {
	switch n.typeOf(e.ID()).Kind() {
	case types.ListKind, types.MapKind, types.OpaqueKind, types.DynKind, types.AnyKind, types.TypeParamKind:
	default:
		return nil // neither a list nor something that contains one
	}
	switch e.Kind() {
	case ast.CallKind:
		return n.call(e)
	case ast.IdentKind:
		return n.bound[e.AsIdent()]
	case ast.ComprehensionKind:
		return n.comprehension(e.AsComprehension())
	case ast.SelectKind:
		return n.in(e.AsSelect().Operand())
	case ast.ListKind:
		return n.anyOf(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			if found := n.in(entry.AsMapEntry().Value()); found != nil {
				return found
			}
		}
	default:
	}
	return nil
}

// comprehension follows optMap and optFlatMap, which only bind a variable. Every other macro makes a new list.
func (n nativeLists) comprehension(c ast.ComprehensionExpr) ast.Expr {
	if condition := c.LoopCondition(); condition.Kind() != ast.LiteralKind || condition.AsLiteral() != types.False {
		return nil
	}
	inner := nativeLists{n.typeOf, maps.Clone(n.bound)}
	delete(inner.bound, c.AccuVar())
	if found := n.in(c.AccuInit()); found != nil {
		if inner.bound == nil {
			inner.bound = map[string]ast.Expr{}
		}
		inner.bound[c.AccuVar()] = found
	}
	return inner.in(c.Result())
}

func (n nativeLists) anyOf(all ...ast.Expr) ast.Expr {
	for _, one := range all {
		if found := n.in(one); found != nil {
			return found
		}
	}
	return nil
}

func (n nativeLists) call(e ast.Expr) ast.Expr {
	name, args := e.AsCall().FunctionName(), operands(e.AsCall())
	switch {
	case sources[name]:
		return e
	case name == celoperators.Conditional:
		return n.anyOf(args[1:]...)
	case name == celoperators.Add:
		for i, one := range args {
			if found := n.in(one); found != nil && !filled(args[1-i]) {
				return found
			}
		}
		return nil
	}
	switch name {
	case "sort", "distinct", "@sortByAssociatedKeys":
		if filled(args[0]) {
			return nil
		}
		return n.in(args[0]) // An empty list comes back as it is.
	case celoperators.Index, celoperators.OptIndex, celoperators.OptSelect:
		return n.in(args[0])
	case "dyn", "value", "orValue", "or", "optional.of", "optional.ofNonZeroValue":
		return n.anyOf(args...)
	}
	return nil
}

// operands returns what a call works on: the target of a member function is the first.
func operands(c ast.CallExpr) []ast.Expr {
	if c.IsMemberFunction() {
		return append([]ast.Expr{c.Target()}, c.Args()...)
	}
	return c.Args()
}

// filled reports whether a list is never empty.
func filled(e ast.Expr) bool {
	switch e.Kind() {
	case ast.ListKind:
		return e.AsList().Size() > len(e.AsList().OptionalIndices())
	case ast.CallKind:
		args := operands(e.AsCall())
		switch e.AsCall().FunctionName() {
		case "split":
			return len(args) == 2 // A limit of 0 yields no item.
		case celoperators.Add:
			return filled(args[0]) || filled(args[1])
		case celoperators.Conditional:
			return filled(args[1]) && filled(args[2])
		case "sort", "distinct", "reverse":
			return filled(args[0])
		}
	default:
	}
	return false
}
