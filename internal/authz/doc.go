// Package authz asks a chain of authorizers about the author of a request, one verb at a time. The chain is an
// AuthorizationConfiguration (KEP-3221). It consists of parts of k8s.io/apiserver (webhook authorizer, union, match conditions and
// metrics) and of internal/rbac, which decides in process.
//
// Start reading at Chain. A Chain has one snapshot in force: the authorizers and caches made from one content of its file. A reload
// replaces the snapshot (snapshot.go). For and ForReview take the snapshot in force and bind the user and the object, so that
// fieldperm.Decide sees an authorizer that takes only verbs (request.go).
//
// A cached decision answers most checks: lookup finds it in the decision caches of the webhooks (cache.go). Decisions are cached for
// the TTL of the webhook, under a key that is different for every two questions that an authorizer can tell apart (request.go). If
// there is none, the chain is asked. Equal questions at the same time are asked once (singleflight.go, P8). A trace records what
// happened to a question: which authorizer decided, and whether that took a round trip (trace.go).
//
// webhook.go has the webhooks: the connection, and the strict transport, which takes only reviews for answers. conditional.go has those that
// return conditions, which are asked before the chain. endpoint.go checks whether webhooks answer, for a reload and for check-config.
//
// conditional.go has the webhooks that return conditions, which come before the chain, and onwrite.go what they decide on a write.
//
// The package imports admission and fieldperm, never the server.
package authz
