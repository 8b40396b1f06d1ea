// Package generators makes the files that fieldperm's users install: the static configuration of a
// kube-apiserver and the objects for fieldperm's own user (Manifests), and CustomResourceDefinitions
// that an API server takes (CRD). Its functions are pure: they return files and read or write none.
//
// Start reading at Manifests and CRD. Uncovered computes what Manifests needs to know of schemas.
// The package may import schema and what lies below it, never admission, internal or cmd.
package generators

// File is a generated file.
type File struct {
	// Name is the path relative to the directory of all generated files, with slashes.
	Name string
	Data []byte
}
