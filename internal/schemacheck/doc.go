// Package schemacheck says what documents effect, for those who write them: lint, /admit/schemas, the status of sets and audit. No decision on a
// request needs it.
//
// Compile is compile.Compile with the faults of UncoveredPermissionSets that guard nothing: a barrier without effect looks like one that holds
// (check.go). Sets.Barriers and Sets.GuardedFields say where sets hold. TakenFrom and TakenFromSets compare two schemas: which verbs no longer cover
// a field, and which sets no longer guard it (counterpart.go).
//
// What must hold: a comparison errs on the side of a verb that is taken, and a set is at fault only if no kind can ever have the verb there. What
// may be installed later is Unmatched.
package schemacheck
