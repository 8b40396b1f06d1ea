// Package authz asks a chain of authorizers about the author of a request, one verb at a time. The chain is an
// AuthorizationConfiguration (KEP-3221). It consists of parts of k8s.io/apiserver (webhook authorizer, union, match conditions and
// metrics) and of internal/rbac, which decides in process.
//
// Start reading at Chain. A Chain has one snapshot in force: the authorizers and caches made from one content of its file. A reload
// replaces the snapshot (snapshot.go). For and ForReview take the snapshot in force and bind the user and the object, so that
// fieldperm.Decide sees an authorizer that takes only verbs (request.go).
//
// Each check asks the chain, which is a union of k8s.io/apiserver (ask.go): the first authorizer that allows or denies decides. A webhook
// returns its cached decision, for its TTL, under a key that is different for every two questions that an authorizer can tell apart
// (request.go). If there is none, it makes a round trip, one for all equal questions at the same time (roundtrip.go, P8). The trace of a check
// records which authorizer decided, and whether that took a round trip.
//
// What must hold: an authorizer that fails is an error and never a decision, and a denial beside a failure has the failure (P4, ask.go and
// strictTransport). A decision is used as long as its TTL, and under the configuration that asked for it.
//
// webhook.go has the webhooks: the connection, and the strict transport, which takes only reviews for answers. endpoint.go checks whether
// webhooks answer, for a reload and for check-config. conditional.go has the webhooks that return conditions, which come before the chain, and
// onwrite.go what they decide on a write.
//
// The package imports admission and fieldperm, never the server.
package authz
