package audit

import "github.com/fieldperm/fieldperm/schema/endpoint"

// inNamespace reports whether a rule that holds in one namespace can match requests for a resource. A request for a Namespace is in that namespace.
func inNamespace(r Resource) bool {
	resource, _ := r.split()
	return !endpoint.ClusterScoped(r.Group, resource) || r.Group == "" && resource == "namespaces"
}
