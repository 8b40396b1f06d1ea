// Package catalog holds the built-in catalogue of permission verbs as data: one YAML file per API group, and meta.yaml for the fields
// that every object has. README.md describes the format; schema/load decodes it.
//
// The package imports nothing of fieldperm and does not interpret the files.
package catalog
