// Package aggregated has the tests of fieldperm with an aggregated API server: a real kube-apiserver, the server of package server behind an
// APIService, and fieldperm-webhook with --aggregated-groups. They have the build tag integration. What etcd holds is the judge.
//
// Start reading at fixture_test.go, which starts the three.
package aggregated
