// Package authz asks a chain of authorizers about the author of a request, one verb at a time. The chain is an
// AuthorizationConfiguration (KEP-3221). It consists of parts of k8s.io/apiserver (webhook authorizer, union, match conditions and
// metrics) and of internal/rbac, which decides in process.
//
// Start reading at Chain. A Chain has one generation in force: the authorizers and caches made from one content of its file
// (generation.go). A reload replaces the generation (reload.go). For and ForReview take the generation in force and bind the user
// and the object, so that fieldperm.Decide sees an authorizer that takes only verbs (request.go, check.go).
//
// A cached decision answers most checks (recall.go). The decisions of webhooks are cached for their TTL (kept.go), under a key that
// is different for every two questions that an authorizer can tell apart (question.go). If the cache has no decision, the chain is
// asked. Equal questions at the same time are asked once (shared.go, P8). The trail records what happened to a question: which
// authorizer decided, and whether that took a round trip (trail.go).
//
// The package imports admission and fieldperm, never the server.
package authz
