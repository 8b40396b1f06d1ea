// Package compile makes a schema.Schema of documents.
//
// # What it does
//
//  1. Documents are types (Topology), permissions (PermissionDocument) and sets. A document about a fragment becomes one for each document and type that
//     contains the fragment (fragment.go).
//  2. Each entry is read once (entries.go). The entries about a kind are laid over each other in an overlay: one claim for each path, by standing, and all
//     barriers (overlay.go). What a document says about one version holds in the others too (versions.go).
//  3. A builder goes down the types and the overlay at once and makes nodes with their permissions (build.go, permission.go). Equal nodes become one, in
//     the whole compile (share.go).
//  4. Versions are compared: what one may change without showing it, and what it cannot place (hidden.go), and which fields are the same (versions.go).
//  5. Bodies that write a part of an object of another kind get its permissions (bodies.go, graft.go, join.go).
//
// # How to use it
//
// Compile always returns a Schema. The kinds that a faulty document touches are in Schema.Failed, so that writes to them are refused. A command that
// shows where verbs come from sets Documents.Traced.
//
// # What must hold
//
// Barriers are a union: no document takes away what another adds. A fault is one of the document that can cure it, and ends with the cure (faults.go).
// The same documents make the same schema. The schema keeps only strings of them.
//
// # Where each rule is
//
//   - C1, which claim counts: overlay.go (lay, merge, narrow), entries.go (standing)
//   - C2, barriers of keys, prefixes and fragments: overlay.go, permission.go (permissionsOf), fragment.go
//   - C3, lossy versions and verbs that a version cannot place: hidden.go, versions.go
//   - A5, C2 through Scales, Bindings and other names of a resource: bodies.go
package compile
