// Package stack runs a local control plane with fieldperm in it, as an administrator installs it: certificates, the
// files that "fieldperm-gen manifests" writes, and the real fieldperm-webhook. The demo and the tests of the whole
// system share it.
//
// It owns fieldperm's process, its directory, and the waiting for what the API server and fieldperm learn by
// watching. Start reading at [Start]. etcd, kube-apiserver, users and kubectl are package cluster's. It starts
// programs and must not import fieldperm's own packages.
//
// Like a cluster, a stack leaves nothing: [Stack.Stop] ends all, and a watchdog does where the program ends without.
package stack
