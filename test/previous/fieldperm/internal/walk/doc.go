// Package walk goes through two objects at once and charges each changed value with its chain of verbs.
//
// Start at Differ.Compare (walk.go). A Scope (scope.go) is a place on the way with its chains and barriers; members.go and list.go compare
// the parts of objects and lists, barrier.go charges the barriers inside a value that is charged as a whole, and written.go knows what the
// API server writes by itself.
//
// The walk leaves out changed owners (Owned). Package owners compares them. Resolve,
// Points and Follow (resolve.go) lead the paths of managedFields to places.
package walk
