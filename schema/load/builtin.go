package load

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/schema/compile"
)

//go:embed apiservice.yaml
var apiServiceTypes string

//go:embed binding.yaml
var bindingTypes string

const (
	metaTypePrefix     = "io.k8s.apimachinery."
	objectMetaType     = metaTypePrefix + "pkg.apis.meta.v1.ObjectMeta"
	apiServiceType     = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"
	builtInSource      = "built-in kinds"
	schemaComponentRef = "#/components/schemas/"
)

// extraKinds are kinds that client-go's typed schema does not have. They are persisted, or are the body of an endpoint that writes a part
// of an object (Scale, Binding).
func extraKinds() map[runtimeschema.GroupVersionKind]string {
	return map[runtimeschema.GroupVersionKind]string{
		corev1.SchemeGroupVersion.WithKind("Binding"):                           corev1.Binding{}.OpenAPIModelName(),
		autoscalingv1.SchemeGroupVersion.WithKind("Scale"):                      autoscalingv1.Scale{}.OpenAPIModelName(),
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"): apiextensionsv1.CustomResourceDefinition{}.OpenAPIModelName(),
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}:    apiServiceType,
	}
}

// BuiltIn returns the kinds that a kube-apiserver stores, in every version that client-go knows, including old ones: client-go's typed
// schema, and the kinds that it lacks (extraKinds). The types are those that the server publishes, with defaults, list types and map
// types. Callers may change the kinds, but not the types.
func BuiltIn() (compile.Topology, error) {
	topology, err := builtInTopology()
	topology.Kinds = maps.Clone(topology.Kinds)
	return topology, err
}

// builtInTopology makes what BuiltIn returns, once.
var builtInTopology = sync.OnceValues(func() (compile.Topology, error) {
	known, err := clientScheme()
	if err != nil {
		return compile.Topology{}, err
	}
	converter := applyconfigurations.NewTypeConverter(known)
	types, err := clientTypes(converter)
	if err != nil {
		return compile.Topology{}, err
	}
	topology := compile.Topology{Source: builtInSource, Kinds: extraKinds(), RoundTrips: true}
	for gvk := range known.AllKnownTypes() {
		object, ok := persisted(known, gvk)
		if !ok {
			continue
		}
		value, err := converter.ObjectToTyped(object)
		if err != nil {
			return compile.Topology{}, fmt.Errorf("built-in kinds: %s: %w", gvk, err)
		}
		name := value.TypeRef().NamedType
		if name == nil {
			return compile.Topology{}, fmt.Errorf("built-in kinds: %s: its type has no name", gvk)
		}
		topology.Kinds[gvk] = *name
	}
	extensions, err := extensionTypes()
	if err != nil {
		return compile.Topology{}, err
	}
	aggregation, err := typed.NewParser(typed.YAMLObject(apiServiceTypes))
	if err != nil {
		return compile.Topology{}, fmt.Errorf("built-in kinds: APIService: %w", err)
	}
	binding, err := typed.NewParser(typed.YAMLObject(bindingTypes))
	if err != nil {
		return compile.Topology{}, fmt.Errorf("built-in kinds: Binding: %w", err)
	}
	topology.Types = &smd.Schema{Types: slices.Concat(types, extensions, aggregation.Schema.Types, binding.Schema.Types)}
	return topology, nil
})

// clientScheme returns only client-go's kinds. client-go's own scheme is a global variable, to which any package of the program may have
// added kinds.
func clientScheme() (*runtime.Scheme, error) {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return nil, fmt.Errorf("built-in kinds: client-go's scheme: %w", err)
	}
	return known, nil
}

// isBuiltIn reports whether BuiltIn has a version of the kind.
func isBuiltIn(kind runtimeschema.GroupKind) bool {
	for gvk := range extraKinds() {
		if gvk.GroupKind() == kind {
			return true
		}
	}
	// Most custom resources are answered here, without building a scheme.
	if !scheme.Scheme.IsGroupRegistered(kind.Group) {
		return false
	}
	known, err := clientScheme()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(known.VersionsForGroupKind(kind), func(gv runtimeschema.GroupVersion) bool {
		_, ok := persisted(known, gv.WithKind(kind.Kind))
		return ok
	})
}

// persisted returns an object of the kind, and whether a server stores such objects.
func persisted(known *runtime.Scheme, gvk runtimeschema.GroupVersionKind) (runtime.Object, bool) {
	if gvk.Version == runtime.APIVersionInternal || virtual(gvk.GroupKind()) {
		return nil, false
	}
	object, err := known.New(gvk)
	if err != nil {
		return nil, false
	}
	if _, ok := object.(metav1.ObjectMetaAccessor); !ok {
		return nil, false
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return object, true
}

// virtual reports whether objects of the kind are queries or actions that no server stores.
func virtual(kind runtimeschema.GroupKind) bool {
	switch kind.Group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return true
	case "policy":
		return kind.Kind == "Eviction"
	case "":
		return kind.Kind == "Binding" || kind.Kind == "RangeAllocation" || kind.Kind == "ComponentStatus"
	}
	// Neither Scale nor Binding is stored. Their only served version comes from extraKinds.
	return kind.Kind == "Scale"
}

// extensionTypes converts the definitions that apiextensions-apiserver publishes, in the way a server does.
func extensionTypes() ([]smd.TypeDef, error) {
	models := map[string]*spec.Schema{}
	definitions := apiextensionsopenapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef(schemaComponentRef + name)
	})
	for name, definition := range definitions {
		models[name] = &definition.Schema
	}
	types, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		return nil, fmt.Errorf("built-in kinds: definitions of apiextensions.k8s.io: %w", err)
	}
	var out []smd.TypeDef
	for _, t := range types.Types {
		if strings.HasPrefix(t.Name, "io.k8s.apiextensions-apiserver.") || strings.HasPrefix(t.Name, autoscalingv1.Scale{}.OpenAPIModelName()) {
			out = append(out, t)
		}
	}
	return out, nil
}

// clientTypes returns all types of client-go's typed schema.
func clientTypes(converter managedfields.TypeConverter) ([]smd.TypeDef, error) {
	carrier := &corev1.ConfigMap{}
	carrier.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	value, err := converter.ObjectToTyped(carrier)
	if err != nil {
		return nil, fmt.Errorf("built-in kinds: client-go's typed schema: %w", err)
	}
	return value.Schema().Types, nil
}

// metaTypes returns client-go's types of metadata.
func metaTypes() ([]smd.TypeDef, error) {
	types, err := clientTypes(applyconfigurations.NewTypeConverter(scheme.Scheme))
	if err != nil {
		return nil, err
	}
	var out []smd.TypeDef
	for _, t := range types {
		if strings.HasPrefix(t.Name, metaTypePrefix) {
			out = append(out, t)
		}
	}
	return out, nil
}
