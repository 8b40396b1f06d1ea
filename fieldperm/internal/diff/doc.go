// Package diff finds the changes between two objects of a kind. It knows how values compare, and no verb: package charge turns its changes into what a
// user needs.
//
// # Use
//
//	var d diff.Differ
//	d.Start(ctx, kind, old, new)
//	d.Compare(func(c diff.Change) { … })
//	d.End()
//
// A Change is at a Place (place.go), which lasts until the report returns. A value that changes as a whole, such as an item that is added or an
// atomic list, is one change. What is inside it is reported too, with the Whole around it, where the schema may have something to say about it, and
// everywhere if Deep is set.
//
// # What must hold
//
// If Compare reports nothing, the objects are equal as JSON values, except for what the API server writes (D7, D13), the identity and the
// defaults of a new object (C5), and managedFields (D8), which are left in Owned. A change that the API server makes because of another one is reported as
// Derived. What cannot be compared exactly is reported as a change of the next place above.
//
// Time and memory are linear in the bytes of the objects. Parts with equal bytes are skipped, and places share memory. Each loop over an object calls
// Stops.
//
// # Where each rule is
//
//   - diff.go: leaves, and what is free (C5, D1, D4, D7, D9); written.go: what the API server writes (D13)
//   - members.go: objects (D1); list.go and keys.go: lists (D2, D3, D5)
//   - whole.go: inside a value that changes as a whole
//   - irregular.go, apart.go, unseen.go: names, strings and contents that JSON does not tell apart (D10)
//   - resolve.go, index.go, elements.go: the places that the paths of managedFields lead to, for package owners (D8)
package diff
