// Package fieldperm is the pure core: what changed between two objects and which granular verbs
// cover it (Diff), in which order to ask for them (plan), and whether all is covered (Decide).
//
// Read Requirement first, then Diff (diff.go, members.go, list.go; owners from ownership.go on), then
// Decide. Diff walks JSON that is not decoded. The rules that comments name (C2, D8, P1, …) are those of
// docs/semantics.md.
//
// The package knows no client, HTTP, clock or log, and starts no goroutine beyond Decide's bounded
// fan-out. It imports internal/rawjson, schema and verbs, never what lies above it (admission, and the
// rest of internal). Who asks and about which object is closed over in the Authorizer that a caller
// brings.
package fieldperm
