// Package metrics declares fieldperm's metrics, all ALPHA, in a registry of their own, so that
// several servers can run in one process. Start at New.
package metrics
