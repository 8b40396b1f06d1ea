package policies

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Defined returns the types of custom resources as their CustomResourceDefinitions say, and asks published for those of others. An API server
// serves a new version of a definition before it publishes the type. In that time a condition would not be checked against it.
func Defined(definitions func() ([]*sources.Definition, error), published Types) Types {
	return func(ref endpoint.Ref) (map[string]*spec.Schema, error) {
		list, err := definitions()
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinitions: %w", err)
		}
		at := slices.IndexFunc(list, func(d *sources.Definition) bool { return defines(d, ref) })
		if at < 0 {
			return published(ref)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		whole, err := list[at].Whole()
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, &crd); err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %q: %w", list[at].GetName(), err)
		}
		return typesIn(&crd, ref, published)
	}
}

func defines(definition *sources.Definition, ref endpoint.Ref) bool {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	return group == ref.Group && plural == ref.Resource
}

// typesIn returns the types of the served versions that have the subresource.
func typesIn(crd *apiextensionsv1.CustomResourceDefinition, ref endpoint.Ref, published Types) (map[string]*spec.Schema, error) {
	out := map[string]*spec.Schema{}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		has := version.Subresources
		switch {
		case !version.Served:
		case ref.Subresource == "", ref.Subresource == "status" && has != nil && has.Status != nil:
			of, err := typeOf(crd, version.Name)
			if err != nil {
				return nil, fmt.Errorf("CustomResourceDefinition %q: version %q: %w", crd.Name, version.Name, err)
			}
			out[version.Name] = of
		case ref.Subresource == "scale" && has != nil && has.Scale != nil:
			// Every Scale is of one type.
			of, err := published(endpoint.Ref{Group: "apps", Resource: "deployments", Subresource: "scale"})
			if err != nil {
				return nil, err
			}
			out[version.Name] = of["v1"]
		}
	}
	return out, nil
}

// typeOf returns the type of the objects of a version, in the form in which the API server publishes it.
func typeOf(crd *apiextensionsv1.CustomResourceDefinition, version string) (*spec.Schema, error) {
	document, err := builder.BuildOpenAPIV3(crd, version, builder.Options{})
	if err != nil || document.Components == nil {
		return nil, err
	}
	return typeIn(document.Components.Schemas, runtimeschema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind})
}
