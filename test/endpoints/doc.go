// Package endpoints records which endpoint of a real kube-apiserver writes which stored object and which of its fields, and compares
// schema/endpoint/observed.yaml with the result.
//
// For every endpoint in discovery it sends bodies in which every published field has a value of its own, and reads from etcd where these
// values were stored (edit_test.go, trial_test.go). If a body is refused, it tries parts of it, down to single fields. record_test.go
// writes the findings: start reading there.
package endpoints
