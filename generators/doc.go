// Package generators makes the files that fieldperm's users install: the configuration of a kube-apiserver and the objects for the
// cluster (Manifests, ClusterManifests), and CustomResourceDefinitions that an API server accepts (CRD). It also writes the reference
// of verbs (Refdocs, Powers). Its functions are pure: they return files, and neither read nor write any.
//
// generators/markers makes CustomResourceDefinitions from Go types. Start reading at Manifests and Convert. The objects in the files that the running server must agree on are those of generators/webhooks.
// The package imports generators/webhooks, schema and lower packages. It also imports admission, for the user of probes. It never
// imports internal or cmd, and nothing that runs imports it.
package generators

// File is a generated file.
type File struct {
	// Name is the path relative to the directory of all generated files, with slashes.
	Name string
	Data []byte
}
