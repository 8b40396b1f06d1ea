package plugin

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// scopeOffline reports whether the objects are in namespaces, by the list of built-in kinds or by the definition of the kind.
func (o *whoCan) scopeOffline(w *access.Write) (bool, error) {
	if endpoint.BuiltIn(w.Group, w.Resource) || endpoint.ClusterScoped(w.Group, w.Resource) {
		return !endpoint.ClusterScoped(w.Group, w.Resource), nil
	}
	namespaced := true
	err := o.definitions(func(d *apiextensionsv1.CustomResourceDefinition) bool {
		found := d.Spec.Group == w.Group && d.Spec.Names.Plural == w.Resource
		namespaced = !found || d.Spec.Scope == apiextensionsv1.NamespaceScoped
		return !found
	})
	return namespaced, err
}
