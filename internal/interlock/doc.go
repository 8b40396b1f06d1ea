// Package interlock keeps the promise that every Allow of /authorize is: that admission will look at
// the request (A5). It is open, so that nothing is let through, until enforcement is proven on every
// kube-apiserver, and open again as soon as one proof is missing.
//
// There are two proofs. The static one reads what is to make the API servers ask: the webhook configuration, where it
// is an object of the cluster, else the files of the control plane, and then the hash of what each API server has
// loaded of them. The dynamic one is a canary: a dry-run write that changes nothing, sent as a user who holds
// nothing, which must be refused by fieldperm's own /admit/granular with a token that nobody else can
// make. What aggregated API servers serve takes canaries of its own.
//
// Start at Interlock; then Canaries (nonces and tokens), Prober (one canary), Static and Manifests (what is to be in
// force), loaded.go (what is) and Servers (whom to ask). docs/enforcement.md has the argument, test/model its model.
package interlock
