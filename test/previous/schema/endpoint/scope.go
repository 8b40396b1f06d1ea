package endpoint

import "slices"

// ClusterScoped reports whether a resource of Kubernetes or of fieldperm has no namespace. Of other custom resources their definitions say it. A
// test compares the list with an API server.
func ClusterScoped(group, resource string) bool {
	return slices.Contains(map[string][]string{
		"":                             {"namespaces", "nodes", "persistentvolumes", "componentstatuses"},
		"admissionregistration.k8s.io": {"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"},
		"apiextensions.k8s.io":         {"customresourcedefinitions"},
		"apiregistration.k8s.io":       {"apiservices"},
		"authentication.k8s.io":        {"selfsubjectreviews", "tokenreviews"},
		"authorization.k8s.io":         {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"},
		"certificates.k8s.io":          {"certificatesigningrequests", "clustertrustbundles"},
		"flowcontrol.apiserver.k8s.io": {"flowschemas", "prioritylevelconfigurations"},
		"internal.apiserver.k8s.io":    {"storageversions"},
		"networking.k8s.io":            {"ingressclasses", "ipaddresses", "servicecidrs"},
		"node.k8s.io":                  {"runtimeclasses"},
		"rbac.authorization.k8s.io":    {"clusterrolebindings", "clusterroles"},
		"resource.k8s.io":              {"deviceclasses", "devicetaintrules", "resourceslices"},
		"scheduling.k8s.io":            {"priorityclasses"},
		"storage.k8s.io":               {"csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"},
		"storagemigration.k8s.io":      {"storageversionmigrations"},
		"fieldperm.dev":                {"conditionalpolicies", "permissionobservations", "permissionschemas", "uncoveredpermissionsets"},
	}[group], resource)
}
