// Package rbac decides like the RBAC authorizer of a kube-apiserver. Two authorizers share one core: Live follows the Roles,
// ClusterRoles and bindings of a cluster; Authorizer has read them from files.
//
// Read index first (the objects, found by the subjects of bindings), then search (how a decision is made), then Authorizer
// (aggregation, files) and Live (informers, and when their state is too old to decide).
//
// The meaning of the rules is that of https://kubernetes.io/docs/reference/access-authn-authz/rbac/. The package imports nothing of
// fieldperm except internal/manifest and schema/load.
package rbac
