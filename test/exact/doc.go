// Package exact compares Diff with expected results that are computed without it.
//
// For random pairs of objects, of every built-in kind and of generated CustomResourceDefinitions, two results must agree, path by path:
// Diff on raw JSON, and an oracle. The oracle is made of structured-merge-diff's Compare and of simple code for the rules that Compare
// lacks (membership, order, duplicates, roles, creation, barriers, ownership). The oracle shares the compiled schema and the verb grammar
// with Diff, and nothing else.
//
// Start reading at exact_test.go. Objects come from object.go and crd.go, edits from edit_test.go and owners_test.go, and the oracle is in
// the files oracle*.go. Cases that were found have names in named_test.go. [Stored] offers the oracle to tests that judge the objects that
// an API server has stored.
package exact
