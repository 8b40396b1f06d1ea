// Package observability holds alerts, dashboard and documentation to what fieldperm-webhook exposes:
// each expression is parsed, each metric, label and value in it must exist, and each alert must fire
// on series that show what it is about, and on no others. Start at alerts_test.go.
//
// It is a module of its own, because Prometheus brings much along that fieldperm does not need. Run
// it with: go -C test/observability test ./...
package observability
