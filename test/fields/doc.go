// Package fields writes every field of every built-in kind on a real API server, as a user who holds the
// marker and the field's most specific verb and no more.
//
// A run has two passes, each of dry runs. First an administrator looks for a write of each field that the API
// server takes: a change of a stored object, else a new object (edit_test.go, values_test.go, repair_test.go).
// Then the holder of the verbs that the change takes sends the same. What the API server writes besides what was
// sent is recorded on the way.
//
// What the API server writes by itself is recorded by observe_test.go, which has an observer for each object,
// and explained by cause_test.go (new objects) and change_test.go (changes); recorded_test.go holds
// schema/endpoint/written.yaml against it.
//
// Start reading at fields_test.go. The package needs the control plane, so that all of it is in test files.
package fields
