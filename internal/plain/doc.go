// Package plain is Diff in its plain form: it decodes both objects and compares them node by node. It is
// written to be read and to be trusted, and is the reference that fieldperm.Diff is held against, requirement by
// requirement, by the tests and benchmarks that import it; no command does. A rule that changes, changes
// here first.
//
// Start at Diff. The package may import fieldperm for the types of its result, never for what it computes.
package plain
