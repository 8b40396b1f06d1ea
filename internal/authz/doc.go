// Package authz asks a chain of authorizers about the author of a request, verb by verb. The chain is an
// AuthorizationConfiguration (KEP-3221) made of k8s.io/apiserver's own parts: its webhook authorizer,
// union, match conditions and metrics, and internal/rbac in process.
//
// Start reading at Chain. A Chain has one generation in force, which is what one content of its file made
// (generation.go); a reload puts another in its place (reload.go). For and ForReview take the generation
// in force and close over who asks and about what, so that fieldperm.Decide sees an authorizer that knows
// verbs only (request.go, check.go). Most checks are answered from what is known (recall.go): webhooks'
// answers are kept for their TTL (kept.go), by a key that no two questions share (question.go). Else the
// chain is asked. Equal questions are asked once (shared.go, P8), and what became of one on its way is on
// its trail (trail.go): who decided, and whether it took a round trip.
//
// The package imports admission and fieldperm, never the server.
package authz
