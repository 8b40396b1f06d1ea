// Package catalog is the built-in catalogue of permission verbs as data: one YAML file per API group,
// meta.yaml for what every object has. README.md describes the format; schema/load decodes it.
//
// The package imports nothing of fieldperm and knows nothing of what the files mean.
package catalog
