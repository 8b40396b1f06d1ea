// Command suite runs the tests: those of make test, or with -all those that make test-all adds.
//
// Both have two lanes that run side by side, each a list of commands (steps.go). The tests that speak to a real control plane wait
// most of the time. The tests that use the processor have a lower priority, so that they delay nothing.
//
// make test runs every test of the module once, except for those of later.yaml, with -short: drawn tests draw fewer cases. make test-all
// runs what make test did not: the tests of later.yaml, drawn tests with all their cases, the oldest minor of Kubernetes, the modules of their own that
// take long, and once more, with the race detector, each package that starts goroutines (packages.go).
//
// The output of a test is shown if it fails (progress.go). bin/test-times has what each package took last time on this machine; the
// longest begin first (times.go).
package main
