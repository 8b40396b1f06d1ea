// Package metrics declares fieldperm's metrics. All are ALPHA. They are in a separate registry, so that several servers can run in
// one process. Start at New; Handler serves the metrics. docs/reference/metrics.md is generated from the declarations here, and
// test/observability compares rules and dashboard with them.
//
// Labels have few values: endpoints, results, modes, reasons, and the addresses of kube-apiservers. A label is never a user, an
// object, a resource or a verb. The package imports no other package of fieldperm.
package metrics
