// Package crdrefdocs checks, with elastic/crd-ref-docs from the Go proxy, that the templates of fieldperm-gen refdocs --format crd-ref-docs
// show the verbs of Go types. Run it with the build tag integration. The program and the types are in tools, a module of their own.
package crdrefdocs
