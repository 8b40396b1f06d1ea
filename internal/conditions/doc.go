// Package conditions decides in two phases, as KEP-5681 describes it. In the authorization phase the objects are not known, so that an
// authorizer may answer with conditions on them. In admission the objects are known, and the conditions are evaluated. The decision is the one
// that the authorizers would have made if they had known the objects at once.
//
// The decisions are those of k8s.io/apiserver. Start at Chain. The package expression has conditions in CEL, and wire the forms in which
// programs send conditions.
package conditions
