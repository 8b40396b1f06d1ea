// Package endpoints records which endpoint of a real kube-apiserver writes which stored object and which of its fields,
// and holds schema/endpoint/observed.yaml against it.
//
// For every endpoint in discovery it sends bodies in which every field that the API publishes has a value of its own, and
// looks in etcd for what became of them (edit_test.go, trial_test.go). Where a body is refused it is tried in parts, down
// to single fields. What is found is written by record_test.go: start reading there.
package endpoints
