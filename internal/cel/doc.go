// Package cel is the engine of the Common Expression Language for all expressions of fieldperm: excludedWhen, the parameters of verbs, match conditions
// of UncoveredPermissionSets, and ConditionalPolicies. It is k8s.io/apiserver/pkg/cel/environment with variables. Files of kube-apiserver (KEP-3221 and
// KEP-3331) are evaluated by its own packages instead.
//
// Start at Environment, which compiles. All expressions have the same limits: MaxLength, the limit of Kubernetes for one call, estimated and counted, and
// Budget for all expressions about a request. Of is the view of JSON.
//
// An error is no value. What it counts as is up to the caller: true for a barrier and for a Deny, false for an Allow. The package has no client and does
// not log.
package cel
