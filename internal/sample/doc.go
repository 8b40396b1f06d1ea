// Package sample makes minimal objects that an API server accepts, for canaries that create: a dry-run
// CREATE reaches validating admission only if decoding, defaulting, the default admission plugins and
// validation let the object pass.
//
// It owns the objects of the built-in kinds (kinds.yaml) and the search for an object that fits a
// CustomResourceDefinition. Start reading at [Object]. It knows no client, and sends nothing.
//
// A wrong object costs availability, never safety: the API server refuses it before admission, so the
// canary proves nothing and the marker lets nobody create.
package sample
