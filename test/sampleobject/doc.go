// Package sampleobject makes minimal objects that an API server accepts: they pass decoding, defaulting, the default admission plugins
// and validation. Tests create one of every kind.
//
// It has the objects of the built-in kinds (kinds.yaml), and searches for an object that fits a CustomResourceDefinition. Start
// reading at [New]. It uses no client and sends nothing.
package sampleobject
