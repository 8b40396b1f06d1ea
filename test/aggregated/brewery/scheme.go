package brewery

import (
	"encoding/json"
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/fieldperm/fieldperm/test/aggregated/brewery/v1"
	"github.com/fieldperm/fieldperm/test/aggregated/brewery/v1beta1"
)

// Group is the API group.
const Group = "brewery.example.com"

var internal = runtimeschema.GroupVersion{Group: Group, Version: runtime.APIVersionInternal}

// Scheme returns a scheme with every version of the group, and with the kinds that every API server needs.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(internal, &Keg{}, &KegList{}, &Formula{}, &FormulaList{})
	err := errors.Join(
		v1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), autoscalingv1.AddToScheme(scheme),
		convertible(scheme, &Keg{}, &v1.Keg{}, &v1beta1.Keg{}), convertible(scheme, &KegList{}, &v1.KegList{}, &v1beta1.KegList{}),
		convertible(scheme, &Formula{}, &v1.Formula{}, &v1beta1.Formula{}), convertible(scheme, &FormulaList{}, &v1.FormulaList{}, &v1beta1.FormulaList{}),
		scheme.SetVersionPriority(v1.GroupVersion, v1beta1.GroupVersion),
	)
	core := runtimeschema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, core)
	scheme.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, err
}

// convertible registers the conversions between the internal type of a kind and those of its versions. Fields of the same name in JSON become
// each other, and a field that the target does not have is lost.
func convertible(scheme *runtime.Scheme, hub runtime.Object, versions ...runtime.Object) error {
	through := func(from, to any, _ conversion.Scope) error {
		raw, err := json.Marshal(from)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return err
		}
		// The caller sets the type after the conversion.
		to.(runtime.Object).GetObjectKind().SetGroupVersionKind(runtimeschema.GroupVersionKind{})
		return nil
	}
	var errs []error
	for _, version := range versions {
		errs = append(errs, scheme.AddConversionFunc(hub, version, through), scheme.AddConversionFunc(version, hub, through))
	}
	return errors.Join(errs...)
}
