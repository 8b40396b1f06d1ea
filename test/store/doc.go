// Package store reads what a control plane stores: the keys of etcd, each with its values over time.
//
// It owns the connection to etcd, the log of changes and the decoding of stored objects. Start reading at [Open]. It
// knows keys and JSON, and nothing of fieldperm, so that a test can judge fieldperm by it.
//
// Stored objects can be decoded only if kube-apiserver stores them as JSON: give cluster.Config the flags
// [ServerFlags].
package store
