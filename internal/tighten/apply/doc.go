// Package apply makes the changes of a tighten.Proposal in a cluster, in an order in which the subject is never without a verb that it
// needs, and takes them back.
//
// Start at Client.Apply. It adds Roles and bindings (add.go) and a PermissionObservation first. Called again, it takes update and patch
// away (take.go) if the observation shows that the subject does not need them (gate.go). Client.Undo (undo.go) restores what was there.
//
// The only memory is the record (record.go), a Secret in the namespace of Kubernetes' own components (store.go). Others than cluster
// administrators may write Roles and bindings of a namespace, or PermissionObservations, so that nothing in these decides what is restored,
// deleted or filled with rules. The record is written before each change that it is about. So the program may end at any moment, and can be
// called again.
package apply
