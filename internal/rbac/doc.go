// Package rbac decides as the RBAC authorizer of a kube-apiserver does. There are two authorizers over
// one core: Live follows the Roles, ClusterRoles and bindings of a cluster, Authorizer has read them
// from files.
//
// Read index first (the objects, found by who is bound), then search (how an answer comes about), then
// Authorizer (aggregation, files) and Live (informers, and when they are too old to answer from).
//
// The meaning of the rules is that of
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/. The package
// imports nothing of fieldperm but internal/manifest and schema/load.
package rbac
