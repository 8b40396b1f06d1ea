// Package interlock proves that admission looks at every request that /authorize allows (A5). While enforcement is not proven on
// every kube-apiserver, /authorize allows nothing to granular users. The proof is withdrawn as soon as one part of it is missing.
//
// There are two proofs. The static proof reads the configuration that makes API servers call fieldperm: the webhook configuration
// if it is an object of the cluster; otherwise the files of the control plane, and then the hash of the files that each API server
// has loaded. The dynamic proof is a probe: a dry-run write that changes nothing, sent as a user without permissions. fieldperm's
// own /admit/granular must refuse it with a token that only fieldperm can make. A second probe asks which generation of the object
// an API server has loaded (Prober.Loaded). Resources of aggregated API servers get probes of their own.
//
// Start at Interlock (the state) and round.go (the rounds of proofs); then read ProbeTokens (nonces and tokens), Prober (one probe), Static and Manifests (the configuration that
// must be in force), loaded.go (the configuration that is in force) and Servers (the API servers to probe). docs/enforcement.md has
// the argument, test/model its model.
package interlock
