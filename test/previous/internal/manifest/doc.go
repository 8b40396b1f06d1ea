// Package manifest splits files into documents: YAML or JSON, one or more documents per file. It does not interpret the documents. It is
// the only package that ships and splits files; schema/load, internal/rbac and the command lines read their files through it.
//
// Start at Documents. Split is for callers that report a fault for each document, at its line. The package imports nothing of fieldperm,
// and no client.
package manifest
