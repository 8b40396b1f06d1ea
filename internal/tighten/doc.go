// Package tighten proposes how to move a user from update and patch to granular verbs.
//
// Start at Propose: it takes the Evidence of the writes of a Subject and the RBAC objects of a cluster, and returns a Proposal, which
// has the objects to add and the objects to change. Evidence comes from PermissionObservations (observation.go), audit logs
// (auditlog.go, then event.go) and managedFields (hints.go). Held (rights.go) finds what the subject holds now, strip.go takes update
// and patch out of rules, granular.go makes the rules that replace them. Prove shows that a proposal grants nothing new, Files has its
// objects for kubectl, and Simulation replays a log against it.
//
// The package has no client and no flags. It imports the API types, verbs, internal/rawjson and internal/rbac, and for
// hints also fieldperm and schema.
package tighten
