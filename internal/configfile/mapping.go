package configfile

import (
	"fmt"
	"maps"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	celoperators "github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// mappingFaults returns the mappings that compile and then refuse tokens, whatever is in them. k8s.io/apiserver accepts every type
// when it compiles a mapping, and accepts fewer when it evaluates one: a string, and where list is true also a list of strings.
func mappingFaults(compiler authenticationcel.Compiler, configuration *apiserver.AuthenticationConfiguration) (errs field.ErrorList) {
	check := func(path *field.Path, expression string, list bool) {
		if expression == "" {
			return
		}
		compiled, err := compiler.CompileClaimsExpression(&authenticationcel.ClaimMappingExpression{Expression: expression})
		if err != nil {
			return // Validation reports it.
		}
		if t := compiled.AST.OutputType(); !fits(t, list) {
			errs = append(errs, field.Invalid(path, expression, fmt.Sprintf("refuses every token: it yields %s", t)))
		} else if source := nativeListsOf(compiled.AST); list && source != "" {
			errs = append(errs, field.Invalid(path, expression, "refuses tokens: k8s.io/apiserver does not accept a list of "+source+" that is not mapped"))
		}
	}
	for i := range min(len(configuration.JWT), 64) { // Validation refuses more issuers, and looks at none.
		m, path := &configuration.JWT[i].ClaimMappings, field.NewPath("jwt").Index(i).Child("claimMappings")
		check(path.Child("username", "expression"), m.Username.Expression, false)
		check(path.Child("groups", "expression"), m.Groups.Expression, true)
		check(path.Child("uid", "expression"), m.UID.Expression, false)
		for n := range m.Extra {
			check(path.Child("extra").Index(n).Child("valueExpression"), m.Extra[n].ValueExpression, true)
		}
	}
	return errs
}

// fits reports whether a result can be accepted. The type of a claim is dyn: it depends on the token.
func fits(t *types.Type, list bool) bool {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.StringKind:
		return true
	case types.NullTypeKind:
		return list
	case types.ListKind:
		// The type of an item of [] is a parameter.
		return list && (t.Parameters()[0].Kind() == types.TypeParamKind || fits(t.Parameters()[0], false))
	default:
		return false
	}
}

// nativeLists finds lists that are Go's []string. k8s.io/apiserver refuses them as groups and as extra. Lists of claims, literals and
// the results of map and filter are of other types.
//
// An operator passes such a list on if it returns an operand as it is. That includes +: it returns one operand if the other is empty.
type nativeLists struct {
	typeOf func(id int64) *types.Type
	// bound are the variables of optMap whose value is such a list, with the function that made it.
	bound map[string]string
}

func nativeListsOf(compiled *celgo.Ast) string {
	checked := compiled.NativeRep()
	return nativeLists{typeOf: checked.GetType, bound: map[string]string{}}.in(checked.Expr())
}

// sources are the functions of Kubernetes' CEL that return []string, also inside a map or an optional.
var sources = map[string]bool{"split": true, "findAll": true, "validate": true, "getQuery": true}

// in returns the function whose list an expression may yield unchanged, "" if there is none.
func (n nativeLists) in(e ast.Expr) string {
	switch n.typeOf(e.ID()).Kind() {
	case types.ListKind, types.MapKind, types.OpaqueKind, types.DynKind, types.AnyKind, types.TypeParamKind:
	default:
		return "" // neither a list nor something that contains one
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
		var values []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			values = append(values, entry.AsMapEntry().Value())
		}
		return n.anyOf(values...)
	default:
		return ""
	}
}

// comprehension follows optMap and optFlatMap, which only bind a variable. Every other macro makes a new list.
func (n nativeLists) comprehension(c ast.ComprehensionExpr) string {
	if condition := c.LoopCondition(); condition.Kind() != ast.LiteralKind || condition.AsLiteral() != types.False {
		return ""
	}
	inner := nativeLists{n.typeOf, maps.Clone(n.bound)}
	inner.bound[c.AccuVar()] = n.in(c.AccuInit())
	return inner.in(c.Result())
}

func (n nativeLists) anyOf(all ...ast.Expr) string {
	for _, one := range all {
		if found := n.in(one); found != "" {
			return found
		}
	}
	return ""
}

func (n nativeLists) call(e ast.Expr) string {
	name, args := e.AsCall().FunctionName(), operands(e.AsCall())
	if sources[name] {
		return name
	}
	switch name {
	case celoperators.Conditional:
		return n.anyOf(args[1:]...)
	case celoperators.Add:
		for i, one := range args {
			if found := n.in(one); found != "" && !filled(args[1-i]) {
				return found
			}
		}
	case "sort", "distinct", "@sortByAssociatedKeys":
		if !filled(args[0]) {
			return n.in(args[0]) // An empty list comes back as it is.
		}
	case celoperators.Index, celoperators.OptIndex, celoperators.OptSelect:
		return n.in(args[0])
	case "dyn", "value", "orValue", "or", "optional.of", "optional.ofNonZeroValue":
		return n.anyOf(args...)
	}
	return ""
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
