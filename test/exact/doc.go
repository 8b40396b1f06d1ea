// Package exact holds Diff to answers that do not come from it.
//
// For random pairs of objects, of every built-in kind and of generated CustomResourceDefinitions, two
// answers must agree, path by path: Diff on raw JSON, and an oracle that is made of structured-merge-diff's
// Compare and of simple code for what that lacks (membership, order, duplicates, roles, creation, barriers,
// ownership). The oracle shares the compiled schema and the verb grammar with what it judges, and nothing else.
//
// Start reading at exact_test.go. Objects come from object.go and crd.go, edits from edit_test.go and
// owners_test.go, the oracle is in the files oracle*.go. Cases that were found have names in named_test.go.
// [Stored] lends the oracle to tests that judge what an API server has stored.
package exact
