package openapi

import (
	"maps"
	"strings"

	kubernetes "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definitions returns the definitions of a server of the group: its own, and those of metadata, lists, options and Scales.
func Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return WithKubernetes(GetOpenAPIDefinitions, ref)
}

// WithKubernetes returns definitions with those of Kubernetes' own types.
func WithKubernetes(of common.GetOpenAPIDefinitions, ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	out := kubernetes.GetOpenAPIDefinitions(ref)
	own := of(func(name string) spec.Ref { return ref(modelName(name)) })
	for _, definition := range own {
		for i, name := range definition.Dependencies {
			definition.Dependencies[i] = modelName(name)
		}
	}
	maps.Copy(out, own)
	return out
}

// modelName returns the name of a definition. openapi-gen uses the Go name of a type of a package that it does not generate from, and the
// definitions of Kubernetes have model names.
func modelName(name string) string {
	below, ok := strings.CutPrefix(name, "k8s.io/")
	if !ok {
		return name
	}
	return "io.k8s." + strings.ReplaceAll(below, "/", ".")
}
