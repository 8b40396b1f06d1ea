// Package metrics declares fieldperm's metrics, all ALPHA, in a registry of their own, so that
// several servers can run in one process. Start at New; Handler serves them. docs/reference/metrics.md
// is generated from what is declared here, and test/observability holds rules and dashboard to it.
//
// Labels have few values: endpoints, results, modes, reasons, and the addresses of kube-apiservers.
// No label is ever a user, an object, a resource or a verb. The package imports nothing of
// fieldperm's.
package metrics
