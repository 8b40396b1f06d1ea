// Package stack runs a local control plane with fieldperm in it, as an administrator installs it: certificates, the files that
// "fieldperm-gen manifests" writes, and the real fieldperm-webhook. The demo and the tests of the whole system share it.
//
// It owns fieldperm's processes, their directory, and the waiting for changes that the API server and fieldperm learn by a watch. Start
// reading at [Start]. Package cluster has etcd, kube-apiserver, users and kubectl. This package starts programs and must not import
// fieldperm's own packages.
//
// For tests of faults it has replicas behind a balancer (balancer.go), a proxy between fieldperm and the API server that can fail
// (proxy.go), an observer of the requests from kube-apiserver to fieldperm (observer.go), certificates that change (certificates.go) and
// endpoints of several API servers (publish.go).
//
// A stack removes everything that it created: [Stack.Stop] ends all processes. If the program ends without calling it, a watchdog does.
package stack
