// Package sample makes minimal objects that an API server accepts, for tests that create one of every kind: decoding,
// defaulting, the default admission plugins and validation let them pass.
//
// It owns the objects of the built-in kinds (kinds.yaml) and the search for an object that fits a
// CustomResourceDefinition. Start reading at [Object]. It knows no client, and sends nothing.
package sample
