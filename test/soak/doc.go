// Package soak plays hours of a cluster's life against two replicas of fieldperm-webhook: requests at a steady rate, while schemas, grants and
// certificates change and processes end and start again. It judges every answer, every failure and the growth of the process that ran the
// longest.
//
// A truth says which answers of a request are right at a time. Start at TestSoak; docs/contributing/soak.md says what is judged and why.
//
// The small form takes less than a minute. The hour is `make test-soak`.
package soak
