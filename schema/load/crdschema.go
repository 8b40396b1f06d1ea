package load

import (
	"cmp"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema/compile"
)

// topology converts the versions in the way an API server does. It uses their structural schemas, with the apiVersion, kind and
// metadata of Kubernetes at the root and in embedded resources.
func (d *definition) topology() (compile.Topology, error) {
	losses := d.losses()
	types := &smd.Schema{}
	topology := compile.Topology{
		Source: d.source, Kinds: map[runtimeschema.GroupVersionKind]string{}, Unserved: map[runtimeschema.GroupVersionKind]string{},
		Plurals: map[runtimeschema.GroupVersionKind]string{}, OtherNames: map[runtimeschema.GroupVersionKind][]string{}, Replicas: map[runtimeschema.GroupVersionKind]string{},
		StatusInside: map[runtimeschema.GroupVersionKind]bool{}, Reads: map[runtimeschema.GroupVersionKind]func(map[string]any) bool{}, Lossy: map[runtimeschema.GroupVersionKind]string{}, KeepsNames: !d.convertsByWebhook(), JSON: true,
	}
	for i := range d.crd.Spec.Versions {
		v := &d.crd.Spec.Versions[i]
		gvk := runtimeschema.GroupVersionKind{Group: d.crd.Spec.Group, Version: v.Name, Kind: d.crd.Spec.Names.Kind}
		at := fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema", i)
		model, err := versionSchema(v)
		if err != nil {
			return compile.Topology{}, fault(d.source, at, "is no structural schema: %v: correct it as the API server would ask", err)
		}
		name := d.crd.Spec.Names.Kind + "." + v.Name + "." + d.crd.Spec.Group
		// Each version is converted by itself, so that a fault names its version. The types that the converter adds to each, for unknown
		// fields, are equal.
		converted, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{name: model}, d.crd.Spec.PreserveUnknownFields)
		if err != nil {
			return compile.Topology{}, fault(d.source, at, "is no structural schema: %v: correct it as the API server would ask", err)
		}
		types.Types = append(types.Types, converted.Types...)
		if !v.Served && !d.stored(v.Name) {
			topology.Unserved[gvk] = name
			continue
		}
		topology.Kinds[gvk], topology.Plurals[gvk] = name, d.crd.Spec.Names.Plural
		topology.OtherNames[gvk] = d.names()
		if loss, lossy := losses[v.Name]; lossy {
			topology.Lossy[gvk] = loss
		}
		topology.Reads[gvk], err = reading(v)
		if err != nil {
			return compile.Topology{}, fault(d.source, at, "is no structural schema: %v: correct it as the API server would ask", err)
		}
		topology.StatusInside[gvk] = v.Subresources == nil || v.Subresources.Status == nil
		if v.Subresources != nil && v.Subresources.Scale != nil {
			topology.Replicas[gvk] = v.Subresources.Scale.SpecReplicasPath
		}
	}
	meta, err := metaTypes()
	if err != nil {
		return compile.Topology{}, fault(d.source, "/spec/versions", "%v", err)
	}
	types.Types = append(types.Types, meta...)
	topology.Types = types
	return topology, nil
}

// names returns the names of the resource beside its plural. An API server derives an absent singular from the kind.
func (d *definition) names() []string {
	names := &d.crd.Spec.Names
	return append([]string{cmp.Or(names.Singular, strings.ToLower(names.Kind))}, names.ShortNames...)
}

// versionSchema returns the schema of one version. If the version has no schema, every field except metadata is unknown.
func versionSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) (*spec.Schema, error) {
	model := &spec.Schema{}
	model.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	switch declared, err := structural(v); {
	case err != nil:
		return nil, err
	case declared != nil:
		model = declared.ToKubeOpenAPI()
	}
	model.Type = spec.StringOrArray{"object"}
	completeSchema(model)
	embedObject(model)
	return model, nil
}

// completeSchema prepares the schema and everything below it for the converter.
func completeSchema(s *spec.Schema) {
	if s == nil {
		return
	}
	// The converter reads an allOf with a single reference as the type; a structural schema has none.
	s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil
	if either, ok := s.Extensions.GetBool("x-kubernetes-int-or-string"); ok && either {
		s.Type, s.Format = spec.StringOrArray{"string"}, formatIntOrString // A scalar of any type, as in OpenAPIV3.
	}
	for name, property := range s.Properties {
		completeSchema(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		completeSchema(s.Items.Schema)
	} else if s.Type.Contains("array") {
		// With x-kubernetes-preserve-unknown-fields, items of any form are allowed.
		s.Items = &spec.SchemaOrArray{Schema: &spec.Schema{}}
	}
	if s.AdditionalProperties != nil {
		completeSchema(s.AdditionalProperties.Schema)
	}
	if embedded, ok := s.Extensions.GetBool("x-kubernetes-embedded-resource"); ok && embedded {
		embedObject(s)
	}
}

// embedObject adds the fields that every Kubernetes object has.
func embedObject(s *spec.Schema) {
	s.SetProperty("apiVersion", *spec.StringProperty())
	s.SetProperty("kind", *spec.StringProperty())
	s.SetProperty("metadata", *spec.RefSchema(schemaComponentRef + objectMetaType))
}
