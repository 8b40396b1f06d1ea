// Package cluster runs a local control plane, a real etcd and a real kube-apiserver, for the demo and for every
// integration test.
//
// It owns the two processes, their directory, the users' certificates and the real kubectl. Start reading at
// [Start]. What makes the cluster one of fieldperm, the authorization chain and the static admission manifests,
// comes from the caller as files: this package must not import any package of fieldperm.
//
// Its processes can be frozen, killed and started again (lifecycle.go), and there can be several API servers (servers.go).
//
// Nothing outlives a cluster: [Cluster.Stop] ends the processes and removes the directory, and a watchdog does
// both when the program that started the cluster ends without Stop, be it by a panic, by the deadline of go test
// or by SIGKILL. It runs on Linux and macOS.
package cluster
