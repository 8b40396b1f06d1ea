// Package cluster runs a local control plane, a real etcd and a real kube-apiserver, for the demo and for every integration test.
//
// It owns the two processes, their directory, the users' certificates and the real kubectl. Start reading at [Start]. The files that are
// specific to fieldperm, the authorization chain and the static admission manifests, come from the caller: this package must not import any
// package of fieldperm.
//
// Its processes can be frozen, killed and started again (lifecycle.go), and there can be several API servers (servers.go).
//
// A cluster leaves no process and no file: [Cluster.Stop] ends the processes and removes the directory. A watchdog does both if the program
// that started the cluster ends without Stop, for example by a panic, by the deadline of go test or by SIGKILL. It runs on Linux and macOS.
package cluster
