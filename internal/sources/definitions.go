package sources

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/discovery"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// CustomResourceDefinitions is the resource of definitions.
func CustomResourceDefinitions() runtimeschema.GroupVersionResource {
	return runtimeschema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// definitions are the CustomResourceDefinitions of an API server, by name.
type definitions struct {
	list  func() ([]*unstructured.Unstructured, error)
	known map[string]*definition
}

// definition is one of them as it is, and as it last compiled.
type definition struct {
	// identity changes with everything that a compile sees.
	identity identity
	kind     runtimeschema.GroupKind
	current  schema.Documents
	// faults of decoding; current has no more than the kind's resource if there are any, because a part
	// of a document might be the part without its barriers.
	faults []error
	// doubt is a fault of the definition's group: who serves it is not certain. The definition is in force all the same.
	doubt error
	good  *schema.Documents
}

type identity struct {
	uid, verbs, vouched string
	// claimed is the APIService that says that the API server has the group by itself, in a group of which that is not known.
	claimed string
	// storedIn is what versions objects may be stored in.
	storedIn   string
	generation int64
	served     bool
}

// read brings the definitions up to date and reports whether any changed. The API server takes a definition in a group that it
// serves by itself, and serves nothing of it.
func (d *definitions) read(services *discovery.Services) (bool, error) {
	list, err := d.list()
	if err != nil {
		return false, fmt.Errorf("custom resource definitions: %w", err)
	}
	changed := false
	seen := map[string]bool{}
	for _, object := range list {
		name := object.GetName()
		seen[name] = true
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		storedIn, _, _ := unstructured.NestedStringSlice(object.Object, "status", "storedVersions")
		before := d.known[name]
		id := identity{
			uid: string(object.GetUID()), generation: object.GetGeneration(), served: served(object, before) && !slices.Contains(services.Own, group),
			claimed:  services.Claimed[group],
			verbs:    object.GetAnnotations()[v1alpha1.PermissionVerbsAnnotation],
			vouched:  object.GetAnnotations()[v1alpha1.LosslessConversionAnnotation],
			storedIn: strings.Join(storedIn, ","),
		}
		if before != nil && before.identity == id {
			continue
		}
		next := &definition{}
		if id.served {
			next = decode(object)
		}
		next.identity = id
		if id.served && id.claimed != "" {
			next.doubt = doubtful(name, group, id.claimed)
		}
		if before != nil && before.identity.uid == id.uid && id.served {
			next.good = before.good
		}
		d.known[name] = next
		changed = true
	}
	for name := range d.known {
		if !seen[name] {
			delete(d.known, name)
			changed = true
		}
	}
	return changed, nil
}

// doubtful says what is wrong where only a label tells that a group is built in. If that were believed, the barriers of the
// definition would be gone. The allowlist leaves such groups out: if the label is right, what is stored is no custom resource.
func doubtful(name, group, service string) error {
	return &schema.Error{
		Source: admission.DocumentSource("CustomResourceDefinition", name), Pointer: "/spec/group",
		Message: fmt.Sprintf("group %q is labelled %s=%s, as if kube-apiserver served it without definitions: the barriers of this one hold, and granular passes nothing in the group: delete APIService %q, which kube-apiserver makes anew if a definition needs it; or upgrade fieldperm if the group is Kubernetes' own",
			group, discovery.AutoManaged, discovery.AutoManagedOnStart, service),
	}
}

// served reports whether the API server serves the definition under the kind that it names, or has done so before: users may
// write its status, and barriers and the kind itself would go with it. One that contends for a kind which another has must not
// bear on the other's, and was never served.
func served(object *unstructured.Unstructured, before *definition) bool {
	named, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	if before != nil && before.identity.uid == string(object.GetUID()) && before.identity.served && before.kind.Kind == named {
		return true
	}
	var is apiextensionsv1.CustomResourceDefinition
	is.Spec.Names.Kind = named
	status, _, err := unstructured.NestedMap(object.Object, "status")
	return err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(status, &is.Status) == nil && accepted(&is)
}

// accepted reports whether an API server serves the definition under the kind that it names: for that
// (apiextensions-apiserver, pkg/apiserver/customresource_handler.go) either condition is enough.
func accepted(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Status.AcceptedNames.Kind == crd.Spec.Names.Kind &&
		(apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established))
}

func decode(object *unstructured.Unstructured) *definition {
	out := &definition{}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	out.kind = runtimeschema.GroupKind{Group: group, Kind: kind}
	source := admission.DocumentSource("CustomResourceDefinition", object.GetName())
	raw, err := object.MarshalJSON()
	if err != nil {
		out.faults = []error{&schema.Error{Source: source, Message: err.Error()}}
		return out
	}
	if out.current, out.faults = load.CRD(source, raw); len(out.faults) > 0 {
		// The rules for barriers stay as they are for this kind, and are found by its resource.
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		out.current = schema.Documents{Topologies: []schema.Topology{{Source: source, Plurals: map[runtimeschema.GroupVersionKind]string{out.kind.WithVersion(""): plural}}}}
	}
	return out
}

// documents returns those of every definition in force. retreat names definitions whose last good
// documents stand in for the current ones; so do those of a definition that did not decode.
func (d *definitions) documents(retreat map[string]bool) schema.Documents {
	parts := make([]schema.Documents, 0, len(d.known))
	for _, name := range slices.Sorted(maps.Keys(d.known)) {
		one := d.known[name]
		switch {
		case !retreat[name] && len(one.faults) == 0:
			parts = append(parts, one.current)
		case one.good != nil:
			parts = append(parts, *one.good)
		default:
			parts = append(parts, one.current)
		}
	}
	return schema.Documents{}.Append(parts...)
}

// unknown returns the kinds of definitions that were never good. No other source may speak for them,
// not even the built-in kinds for one of an API that the server no longer has: their barriers are not
// known.
func (d *definitions) unknown() map[runtimeschema.GroupKind]bool {
	out := map[runtimeschema.GroupKind]bool{}
	for _, one := range d.known {
		if len(one.faults) > 0 && one.good == nil {
			out[one.kind] = true
		}
	}
	return out
}

// without returns the topologies without some kinds; none of them is changed.
func without(topologies []schema.Topology, kinds map[runtimeschema.GroupKind]bool) []schema.Topology {
	if len(kinds) == 0 {
		return topologies
	}
	out := slices.Clone(topologies)
	for i := range out {
		out[i].Kinds = maps.Clone(out[i].Kinds)
		maps.DeleteFunc(out[i].Kinds, func(gvk runtimeschema.GroupVersionKind, _ string) bool { return kinds[gvk.GroupKind()] })
	}
	return out
}

// faults of decoding and doubts, in the order of names.
func (d *definitions) faults() []error {
	var out []error
	for _, name := range slices.Sorted(maps.Keys(d.known)) {
		one := d.known[name]
		out = append(out, one.faults...)
		if one.doubt != nil {
			out = append(out, one.doubt)
		}
	}
	return out
}

// kinds are those that definitions serve.
func (d *definitions) kinds() map[runtimeschema.GroupKind]bool {
	out := map[runtimeschema.GroupKind]bool{}
	for _, one := range d.known {
		out[one.kind] = one.identity.served
	}
	return out
}

// failing returns the definitions that have a kind among the failed ones and were good before.
func (d *definitions) failing(failed map[runtimeschema.GroupVersionKind]error) map[string]bool {
	kinds := map[runtimeschema.GroupKind]bool{}
	for gvk := range failed {
		kinds[gvk.GroupKind()] = true
	}
	out := map[string]bool{}
	for name, one := range d.known {
		if kinds[one.kind] && one.good != nil {
			out[name] = true
		}
	}
	return out
}

// settle remembers what compiled as good.
func (d *definitions) settle(failed map[runtimeschema.GroupVersionKind]error) {
	kinds := map[runtimeschema.GroupKind]bool{}
	for gvk := range failed {
		kinds[gvk.GroupKind()] = true
	}
	for _, one := range d.known {
		if one.identity.served && len(one.faults) == 0 && !kinds[one.kind] {
			good := one.current
			one.good = &good
		}
	}
}
