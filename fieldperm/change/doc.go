// Package change has the types that describe the changes of an object: what Diff of package fieldperm returns and Decide takes.
//
// Start at Requirement. The package imports schema/fieldpath and verbs.
package change
