// Package manifest finds manifest files and takes them apart into documents: YAML or JSON, one
// document or several. What the documents say is for others.
//
// Start at Files and Documents. The package imports nothing of fieldperm, and no client.
package manifest
