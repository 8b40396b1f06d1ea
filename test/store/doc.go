// Package store reads the storage of a control plane: the keys of etcd, each with its values over time.
//
// It owns the connection to etcd, the log of changes and the decoding of stored objects. Start reading at [Open]. It handles keys and JSON,
// and does not depend on fieldperm, so that a test can judge fieldperm with it.
//
// Stored objects can be decoded only if kube-apiserver stores them as JSON: give cluster.Config the flags [ServerFlags].
package store
