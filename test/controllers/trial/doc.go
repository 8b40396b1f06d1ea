// Package trial moves the users of programs from update to granular verbs, as an administrator does, and proves that the programs work as
// before.
//
// Start at [Trial.Prove]. It plays a scenario twice, each time in a new control plane with fieldperm: first with update and patch, under a
// PermissionObservation; then with what kubectl fieldperm tighten proposes, and without update and patch. In the second run no request may
// be refused, every object must end in the same state, and a write outside the fields of each user must be refused.
//
// [Run] is one run, [World] what the administrator sees and changes in it. proposal.go runs the command, outside.go sends the writes that
// must be refused, state.go compares the end states, shipped.go keeps the roles that are shipped.
//
// The files have the build tag controllers, because the programs are built for these tests only.
package trial
