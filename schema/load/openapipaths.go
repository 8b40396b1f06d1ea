package load

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// scaleVerb is the verb of replicas in every kind.
const scaleVerb = "scale"

// readPaths reads from the paths of a document what its types do not say: resources whose name does not follow from their kind, and which field
// the subresource scale of a kind writes. The webhook for barriers names resources, so a wrong name would
// leave the barriers of a kind without effect.
func readPaths(t *compile.Topology, api *spec3.OpenAPI) error {
	if api.Paths == nil {
		return nil
	}
	resources := map[runtimeschema.GroupVersionKind]string{}
	scaled := map[runtimeschema.GroupVersionResource]bool{}
	for path, item := range api.Paths.Paths {
		gvr, subresource, ok := resourceOf(path)
		if !ok || item == nil {
			continue
		}
		for _, operation := range []*spec3.Operation{item.Post, item.Put, item.Patch} {
			if operation == nil {
				continue
			}
			kind, ok := kindOf(operation.Extensions)
			_, described := t.Kinds[kind]
			switch {
			case !ok:
			case subresource == "scale" && schema.IsScale(kind.GroupKind()):
				scaled[gvr] = true
			case subresource == "" && described && resources[kind] != "" && resources[kind] != gvr.Resource:
				return fault(t.Source, fieldpath.Pointer("/paths", path), "kind %q is that of the resources %q and %q, and its barriers would hold for one of them only: serve each resource with a kind of its own", kind.Kind, min(resources[kind], gvr.Resource), max(resources[kind], gvr.Resource))
			case subresource == "" && described:
				resources[kind] = gvr.Resource
			}
		}
	}
	for kind, resource := range resources {
		if endpoint.BuiltIn(kind.Group, resource) {
			continue
		}
		if guessed, _ := meta.UnsafeGuessKindToResource(kind); guessed.Resource != resource {
			set(&t.Plurals, kind, resource)
		}
		if !scaled[kind.GroupVersion().WithResource(resource)] {
			continue
		}
		if path := replicas(t, api.Components.Schemas, kind); path != "" {
			set(&t.Replicas, kind, path)
		} else {
			set(&t.ReplicasUnknown, kind, true)
		}
	}
	return nil
}

func set[V any](of *map[runtimeschema.GroupVersionKind]V, kind runtimeschema.GroupVersionKind, value V) {
	if *of == nil {
		*of = map[runtimeschema.GroupVersionKind]V{}
	}
	(*of)[kind] = value
}

// resourceOf parses the path of a resource, an object or a subresource.
func resourceOf(path string) (runtimeschema.GroupVersionResource, string, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var gv runtimeschema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = runtimeschema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = runtimeschema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return runtimeschema.GroupVersionResource{}, "", false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[1] == "{namespace}" {
		parts = parts[2:]
	}
	switch {
	case len(parts) == 1, len(parts) == 2 && parts[1] == "{name}":
		return gv.WithResource(parts[0]), "", true
	case len(parts) == 3 && parts[1] == "{name}":
		return gv.WithResource(parts[0]), parts[2], true
	}
	return runtimeschema.GroupVersionResource{}, "", false
}

func kindOf(extensions spec.Extensions) (runtimeschema.GroupVersionKind, bool) {
	fields, ok := extensions[keyGroupVersionKind].(map[string]any)
	if !ok {
		return runtimeschema.GroupVersionKind{}, false
	}
	group, _ := fields["group"].(string)
	version, _ := fields["version"].(string)
	kind, _ := fields["kind"].(string)
	return runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: kind}, version != "" && kind != ""
}

// replicas returns the path of the field that the subresource scale of a kind writes: the only field of the specification that has the verb
// "scale", otherwise .spec.replicas. It is "" if the type has neither.
func replicas(t *compile.Topology, schemas map[string]*spec.Schema, kind runtimeschema.GroupVersionKind) string {
	object := schemas[t.Kinds[kind]]
	if object == nil {
		return ""
	}
	of := object.Properties["spec"]
	ref := of.Ref.String()
	if len(of.AllOf) == 1 {
		ref = of.AllOf[0].Ref.String()
	}
	name := strings.TrimPrefix(ref, schemaComponentRef)
	var marked []string
	for _, e := range t.TypePermissions[name] {
		if e.Verb == scaleVerb && strings.LastIndex(e.Path, ".") == 0 && !strings.Contains(e.Path, "[") {
			marked = append(marked, ".spec"+e.Path)
		}
	}
	if len(marked) == 1 {
		return marked[0]
	}
	if target := schemas[name]; len(marked) == 0 && target != nil && ref != "" {
		if _, has := target.Properties["replicas"]; has {
			return ".spec.replicas"
		}
	}
	return ""
}
