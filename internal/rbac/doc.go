// Package rbac decides as the RBAC authorizer of a kube-apiserver does, from Roles, ClusterRoles and
// their bindings in files instead of from a cluster.
//
// Read Grants first (what was read), then New (aggregation, roles resolved), then Authorizer.
//
// The meaning of the rules is that of
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/. The package
// imports nothing of fieldperm but internal/manifest, and no client.
package rbac
