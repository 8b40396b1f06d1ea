// Package charge turns the changes between two objects into what a user needs: change.Requirement, each with the verbs that cover it. It finds no change
// itself: package diff does.
//
// # Use
//
//	c := charge.New(ctx, kind, uncovered, old, new)
//	defer c.Release()
//	if !c.ChargeIrregular() {
//		c.Compare()
//		owners.Charge(c)
//	}
//	requirements, err := c.Finish()
//
// # Demands
//
// A place makes demands (demand.go). One is the chain of verbs to it, from general to specific, with the last barrier on the way. Each barrier beside the
// verbs of a field is one more. A place that becomes a part of other objects has a chain in each of their trees. The demands of a place are those of the
// place above, extended by the permissions of its node. They are computed when the first change there or below is charged.
//
// A change that counts by itself is charged with the demands of its place. Inside a value that changes as a whole, only a place with a barrier of its
// own is. What the API server derives from another field is free, unless a barrier holds.
//
// # What must hold
//
// Every change that diff reports is charged, but for the two exceptions above. Nothing removes a demand: a barrier, a set or a tree more makes the
// same demands or more. The package reads no object: it only hands the scalars of a place to the condition of a barrier there (barriers.go).
//
// # Where each rule is
//
//   - charge.go: the comparison, and the existence of a new object (C5)
//   - demand.go: chains and barriers (C1, C2), bodies of other kinds (D11)
//   - barriers.go: which barriers hold for values, in the status, for owners (C2, D8, D11)
//   - object.go: what is charged as the whole object: lossy versions (C3), irregular objects, and what JSON does not show (D10)
package charge
