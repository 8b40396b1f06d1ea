// Package generators makes the files that fieldperm's users install: the configuration of a kube-apiserver and the objects for the
// cluster (Manifests, ClusterManifests), and CustomResourceDefinitions that an API server accepts (CRD). Its functions are pure: they
// return files, and neither read nor write any.
//
// Start reading at Manifests and CRD. GranularConfiguration, UncoveredConfiguration and GuardPolicy return single objects for the
// installation in which webhooks are objects of the cluster. Uncovered computes the rules that the barriers in schemas need; Union and
// Subtract combine such rules. The package imports schema and lower packages. It also imports admission, for the parts that both must
// agree on: the floor, the user of probes and keys of annotations. It never imports internal or cmd.
package generators

// File is a generated file.
type File struct {
	// Name is the path relative to the directory of all generated files, with slashes.
	Name string
	Data []byte
}
