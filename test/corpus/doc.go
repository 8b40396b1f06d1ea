// Package corpus reads the scenarios of testdata/scenarios, which four executors run: the core in
// process, HTTP over TLS, kubectl-fieldperm review, and a real control plane.
//
// Start at Scenario, then Review (what an API server sends for a step, recorded from a real one), then
// the executors, which are this package's tests. testdata/README.md tells how to write a scenario.
//
// The package may import fieldperm's public packages and internal/rbac; nothing imports it but tests.
package corpus
