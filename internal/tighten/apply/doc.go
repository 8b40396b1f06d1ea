// Package apply makes the changes of a tighten.Proposal in a cluster, in an order in which the subject is never without a verb that it
// needs, and takes them back.
//
// Start at Client.Apply. It adds Roles, bindings and a PermissionObservation first. Called again, it takes update and patch away if the
// observation shows that the subject does not need them (gate.go). Client.Undo (undo.go) restores what was there. What a change takes
// away is recorded on the changed object itself, by the same write (record.go), so that nothing is lost if the program ends in between.
package apply
