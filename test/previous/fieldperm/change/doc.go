// Package change has the types that describe the changes of an object: the result of Diff of package fieldperm, and the input of Decide.
//
// Start at Requirement. The package imports schema/fieldpath and verbs.
package change
