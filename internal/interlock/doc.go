// Package interlock proves that admission looks at every request that /authorize allows (A5). While enforcement is not proven on
// every kube-apiserver, the interlock is open and /authorize allows nothing. When enforcement is proven, the interlock is closed.
// It opens as soon as one proof is missing.
//
// There are two proofs. The static proof reads the configuration that makes API servers call fieldperm: the webhook configuration
// if it is an object of the cluster; otherwise the files of the control plane, and then the hash of the files that each API server
// has loaded. The dynamic proof is a canary: a dry-run write that changes nothing, sent as a user without permissions. fieldperm's
// own /admit/granular must refuse it with a token that only fieldperm can make. Resources of aggregated API servers get canaries of
// their own.
//
// Start at Interlock; then read Canaries (nonces and tokens), Prober (one canary), Static and Manifests (the configuration that
// must be in force), loaded.go (the configuration that is in force) and Servers (the API servers to probe). docs/enforcement.md has
// the argument, test/model its model.
package interlock
