// Package sample makes minimal objects that an API server accepts: decoding, defaulting, the default admission plugins
// and validation let them pass. Probes of barriers create built-in ones in dry runs, tests one of every kind.
//
// It owns the objects of the built-in kinds (kinds.yaml) and the search for an object that fits a
// CustomResourceDefinition. Start reading at [Object]. It knows no client, and sends nothing.
package sample
