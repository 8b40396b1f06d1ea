// Package manifest finds manifest files and splits them into documents: YAML or JSON, one or more documents per file. It does not
// interpret the documents.
//
// Start at Files and Documents. The package imports nothing of fieldperm, and no client.
package manifest
