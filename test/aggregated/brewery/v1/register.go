package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds here.
var GroupVersion = runtimeschema.GroupVersion{Group: "brewery.example.com", Version: "v1"}

// AddToScheme registers the kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Keg{}, &KegList{}, &Formula{}, &FormulaList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
