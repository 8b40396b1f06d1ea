// Package tracing sends spans of reviews and checks to an OpenTelemetry collector, like kube-apiserver and with the same kind of
// configuration file. Start at Provider. Handler continues the trace of the kube-apiserver that calls, Client passes the trace on
// to the server that is asked, Start makes a child span.
//
// A span never has contents of objects: no field paths, no keys, no values, no parameters of verbs, no names of users. Without a
// trace in the context, Start does nothing and costs almost nothing. The package imports nothing of fieldperm.
package tracing
