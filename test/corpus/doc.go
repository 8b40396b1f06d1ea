// Package corpus reads the scenarios of testdata/scenarios, which four executors run: the core in process, HTTP over TLS, kubectl-fieldperm
// review, and a real control plane.
//
// Start at Scenario, then Review (the review that a real API server sent for a step), then the executors, which are the tests of this
// package. testdata/README.md explains how to write a scenario.
//
// The package may import fieldperm's public packages and internal/rbac. Only tests import it.
package corpus
