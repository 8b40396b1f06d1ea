// Package fieldperm is the decision core. Diff finds the changes between two objects, and which granular verbs cover each change. The
// plan sets the order in which the verbs are checked. Decide reports whether every change is covered.
//
// It has four units, each of which imports only those before it:
//
//   - package change: the types of a change. Start at Requirement.
//   - internal/walk: the walk through both objects, which charges each changed value with its chain of verbs. Start at Differ.walk
//     (walk.go, then members.go and list.go), then Scope and Differ.extend (scope.go). barrier.go has what is charged inside a value that
//     is charged as a whole, unseen.go what the JSON of a review does not show; resolve.go follows the paths of managedFields for the next unit.
//   - internal/owners: the comparison of field owners (D8). Start at Charge and owners.compare (ownership.go). It uses the walk through
//     the exported methods of walk.Differ, and the walk does not use it.
//   - the decision, in this package: Decide (decide.go) and plan (plan.go).
//
// Diff joins the first three in a few lines (diff.go). The rule names in comments (C2, D8, P1, …) are those of docs/semantics.md.
//
// The package uses no client, HTTP, clock or log. It starts no goroutines except Decide's bounded parallel checks. It imports
// internal/rawjson, schema, schema/fieldpath and verbs. It never imports higher packages (admission and the rest of internal). The caller
// provides an Authorizer, which already knows the user and the object.
package fieldperm
