// Package scale plays a large cluster against fieldperm-webhook: its definitions, Roles and bindings are real objects of a real
// kube-apiserver, and the reviews that its controllers and users cause come from a sender that acts as a kube-apiserver.
//
// TestScale_WhichWritesReachFieldperm writes what nodes, the controllers of Kubernetes, operators and users write, as those users, and
// counts the calls of fieldperm. TestScale then sends what reaches fieldperm at the rate of a cluster of the given size, loses a replica, and
// replaces all replicas by new ones. The answer of each review is known before it is sent. The rates are in traffic_test.go.
//
// The small form takes less than a minute. The large one is `make test-scale`; docs/contributing/scale.md has its figures.
package scale
