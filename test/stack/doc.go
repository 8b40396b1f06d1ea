// Package stack runs a local control plane with fieldperm in it, as an administrator installs it: certificates, the
// files that "fieldperm-gen manifests" writes, and the real fieldperm-webhook. The demo and the tests of the whole
// system share it.
//
// It owns fieldperm's processes, their directory, and the waiting for what the API server and fieldperm learn by
// watching. Start reading at [Start]. etcd, kube-apiserver, users and kubectl are package cluster's. It starts
// programs and must not import fieldperm's own packages.
//
// For tests of what goes wrong it has replicas behind a balancer (balancer.go), a proxy between fieldperm and the API
// server that can be faulty (proxy.go), an observer of what kube-apiserver asks fieldperm (observer.go), certificates that change (certificates.go) and endpoints of several API servers
// (publish.go).
//
// Like a cluster, a stack leaves nothing: [Stack.Stop] ends all, and a watchdog does where the program ends without.
package stack
