// Package expression compiles, folds and evaluates conditions in the Common Expression Language, as KEP-5681 needs them. An expression is
// compiled once. In the authorization phase Fold replaces what is known and returns true, false, an error or a residual. In admission the
// residual is evaluated on the objects.
//
// The law of the package: an expression and its residual have the same value on the same request. Errors are values here. An error never
// becomes true or false, and true or false never becomes an error. The cost limits are apart from the law: a residual costs less than its
// expression, so that it can have a value where the expression costs too much.
//
// KEP-5681 says that `<residual> && false` may be an error. In CEL it is not: `&&` is false if one operand is false, whatever the other is,
// and `||` is true if one operand is true, also if the other is an error. So Fold prunes both sides, for every effect. All other operators and
// functions are strict: an error in an operand is an error. Fold prunes nothing there. `x in []` stays, because x may be an error.
//
// The partial evaluation of cel-go (Env.ResidualAst) is not used, because it does not keep the law: it makes `x in []` false.
//
// Start at Compiler, then read Expression.Fold and Authorize. The engine is internal/cel. The package has no client and does not log.
package expression
