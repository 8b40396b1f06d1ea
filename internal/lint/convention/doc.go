// Package convention holds the conventions for verbs (KEP-3617, "Style Guide / Consistency Help"): which names are good, which verbs are well
// known, which domains a third party may use, and which fields should have a verb of their own because of their name.
//
// Start at Checker.Verb, which checks one use of a verb. Rules has the rules. Registry is what verbs are known; Power is what the name of a field
// says. internal/lint applies the conventions to files, generators/analyzer to Go types. So the package imports no client, no CEL and no Go
// loader, and reads no file.
package convention
