// Package observability compares alerts, dashboard and documentation with the metrics of fieldperm-webhook: each expression is parsed, each
// metric, label and value in it must exist, and each alert must fire on series with its fault, and on no others. Start at alerts_test.go.
//
// It is a module of its own, because Prometheus has many dependencies that fieldperm does not need. Run it with: go -C test/observability
// test ./...
package observability
