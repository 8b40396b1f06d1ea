package plugin

import runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

// shortNames returns the short names of a resource of Kubernetes. An API server publishes them; without a cluster, and for a user who may
// not read them, this list has those of Kubernetes 1.37. A test against the control plane compares the two.
func shortNames(of runtimeschema.GroupResource) []string {
	return map[runtimeschema.GroupResource][]string{
		{Resource: "componentstatuses"}:      {"cs"},
		{Resource: "configmaps"}:             {"cm"},
		{Resource: "endpoints"}:              {"ep"},
		{Resource: "events"}:                 {"ev"},
		{Resource: "limitranges"}:            {"limits"},
		{Resource: "namespaces"}:             {"ns"},
		{Resource: "nodes"}:                  {"no"},
		{Resource: "persistentvolumeclaims"}: {"pvc"},
		{Resource: "persistentvolumes"}:      {"pv"},
		{Resource: "pods"}:                   {"po"},
		{Resource: "replicationcontrollers"}: {"rc"},
		{Resource: "resourcequotas"}:         {"quota"},
		{Resource: "serviceaccounts"}:        {"sa"},
		{Resource: "services"}:               {"svc"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: {"crd", "crds"},
		{Group: "apps", Resource: "daemonsets"}:                                {"ds"},
		{Group: "apps", Resource: "deployments"}:                               {"deploy"},
		{Group: "apps", Resource: "replicasets"}:                               {"rs"},
		{Group: "apps", Resource: "statefulsets"}:                              {"sts"},
		{Group: "autoscaling", Resource: "horizontalpodautoscalers"}:           {"hpa"},
		{Group: "batch", Resource: "cronjobs"}:                                 {"cj"},
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: {"csr"},
		{Group: "events.k8s.io", Resource: "events"}:                           {"ev"},
		{Group: "networking.k8s.io", Resource: "ingresses"}:                    {"ing"},
		{Group: "networking.k8s.io", Resource: "ipaddresses"}:                  {"ip"},
		{Group: "networking.k8s.io", Resource: "networkpolicies"}:              {"netpol"},
		{Group: "policy", Resource: "poddisruptionbudgets"}:                    {"pdb"},
		{Group: "scheduling.k8s.io", Resource: "priorityclasses"}:              {"pc"},
		{Group: "storage.k8s.io", Resource: "storageclasses"}:                  {"sc"},
		{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}:         {"vac"},
	}[of]
}
