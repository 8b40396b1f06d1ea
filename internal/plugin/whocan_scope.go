package plugin

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// clusterScoped are the built-in resources whose objects are in no namespace, by group. A test compares them with an API server.
var clusterScoped = map[string][]string{
	"":                             {"componentstatuses", "namespaces", "nodes", "persistentvolumes"},
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
}

// scopeOffline reports whether the objects are in namespaces, by the list of built-in kinds or by the definition of the kind.
func (o *whoCan) scopeOffline(w *access.Write) (bool, error) {
	if w.Group == v1alpha1.GroupVersion.Group {
		return false, nil
	}
	if endpoint.BuiltIn(w.Group, w.Resource) {
		return !slices.Contains(clusterScoped[w.Group], w.Resource), nil
	}
	namespaced := true
	err := o.definitions(func(d *apiextensionsv1.CustomResourceDefinition) bool {
		found := d.Spec.Group == w.Group && d.Spec.Names.Plural == w.Resource
		namespaced = !found || d.Spec.Scope == apiextensionsv1.NamespaceScoped
		return !found
	})
	return namespaced, err
}
