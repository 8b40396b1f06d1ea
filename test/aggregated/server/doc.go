// Package server is a small aggregated API server, built with k8s.io/apiserver as authors build theirs, for the tests of fieldperm. It serves
// the group of package brewery.
//
// It owns the server's process-wide set-up and its objects in etcd. Start reading at [Start]. A Config can leave out what an author may
// forget: admission webhooks, delegated authorization, the validation functions of a storage. It must not import any package of fieldperm
// outside of test/.
package server
