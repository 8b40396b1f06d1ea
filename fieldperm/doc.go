// Package fieldperm is the decision core. Diff finds the changes between two objects, and which granular verbs cover each change. The
// plan sets the order in which the verbs are checked. Decide reports whether every change is covered.
//
// It has five units, each of which imports only those before it:
//
//   - package change: the types of a change. Start at Requirement.
//   - internal/diff: the changes between two objects. It knows no verb. Start at Differ.walk.
//   - internal/charge: what the changes require. Start at Charger.take, then demand.
//   - internal/owners: the comparison of field owners (D8). Start at Charge and owners.compare (owners.go).
//   - the decision, in this package: Decide (decide.go) and plan (plan.go).
//
// Diff joins the first four in a few lines (diff.go). The rule names in comments (C2, D8, P1, …) are those of docs/semantics.md.
//
// The package uses no client, HTTP, clock or log. It starts no goroutines except Decide's bounded parallel checks. It imports
// internal/rawjson, schema, schema/fieldpath and verbs. It never imports higher packages (admission and the rest of internal). The caller
// provides an Authorizer, which already knows the user and the object.
package fieldperm
