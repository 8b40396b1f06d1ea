// Package tracing sends spans of reviews and checks to an OpenTelemetry collector, as kube-apiserver
// does and configured by the same kind of file. Start at Provider; Handler continues the trace of the
// kube-apiserver that calls, Client passes it on to the one that is asked, Start makes a span below.
//
// A span never has contents of objects: no field paths, no keys, no values, no parameters of verbs,
// no names of users. Without a trace in the context Start does nothing, at next to no cost. The
// package imports nothing of fieldperm's.
package tracing
