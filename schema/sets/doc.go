// Package sets finds the barriers that UncoveredPermissionSets add to a request.
//
// # What it does
//
// Compile reads the sets of documents. Matching returns the verbs of those that match a request. A set matches an endpoint under any of its names, and the
// endpoints through which a write changes what the set guards (set.go). Its match conditions read the request without its objects (condition.go); each is
// evaluated once for all sets (evaluation.go). Which sets an endpoint has is found once and remembered (applicable.go).
//
// # How to use it
//
// schema/compile compiles the sets with the other documents. Schema.Uncovered asks for those that refuse writes, Schema.Tried for those that only warn or
// audit. Whether the verbs of a set guard anything is no question here: internal/schemacheck answers it.
//
// # What must hold
//
// A set with a fault holds with what is right in it. A condition that fails, or cannot be asked, counts as true. One more set never takes a barrier away.
// What is remembered has a bound, because clients choose names (P8).
//
// # Where each rule is
//
//   - C2, which requests a set matches: set.go (covers), applicable.go
//   - D8, C2, sets about a part of an object hold for its owners: set.go (parts)
//   - D11, C2, sets about the status: set.go (storesStatus)
//   - P4, the end of a condition: evaluation.go
package sets
