// Package generators makes the files that fieldperm's users install: the configuration of a
// kube-apiserver and the objects for the cluster (Manifests, ClusterManifests), and
// CustomResourceDefinitions that an API server takes (CRD). Its functions are pure: they return files
// and read or write none.
//
// Start reading at Manifests and CRD. GranularConfiguration, UncoveredConfiguration and GuardPolicy
// return single objects of the topology in which webhooks are objects of the cluster. Uncovered
// computes the rules that the barriers in schemas need; Union and Subtract are for such rules.
// The package imports schema and what lies below it, and admission for what both must agree on: the floor, the
// user of canaries and keys of annotations. It never imports internal or cmd.
package generators

// File is a generated file.
type File struct {
	// Name is the path relative to the directory of all generated files, with slashes.
	Name string
	Data []byte
}
