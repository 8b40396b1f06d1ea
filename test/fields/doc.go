// Package fields writes every field of every built-in kind on a real API server, as a user with the marker and the most specific verb of
// the field, and nothing more.
//
// A run has two passes of dry runs. First an administrator looks for a write of each field that the API server accepts: a change of a
// stored object, or else a new object (edit_test.go, values_test.go, repair_test.go). Then the user with the verbs of this change sends the
// same write. During this the test records the additional fields that the API server writes.
//
// observe_test.go records the fields that the API server writes by itself, with an observer for each object. cause_test.go explains them
// for new objects, and change_test.go for changes; recorded_test.go compares schema/endpoint/written.yaml with them.
//
// Start reading at fields_test.go. The package needs the control plane, so that all of it is in test files.
package fields
