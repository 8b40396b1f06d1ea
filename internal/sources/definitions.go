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
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// CustomResourceDefinitions returns the resource of CustomResourceDefinitions.
func CustomResourceDefinitions() runtimeschema.GroupVersionResource {
	return runtimeschema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// definitions are the CustomResourceDefinitions of an API server, by name.
type definitions struct {
	list  func() ([]*Definition, error)
	known map[string]*definition
}

// definition is a CustomResourceDefinition: its current form, and the last form that compiled.
type definition struct {
	// identity changes with everything that affects a compile.
	identity identity
	// from is what it was decoded from. It belongs to the informer and is read only.
	from    *Definition
	kind    runtimeschema.GroupKind
	current compile.Documents
	// faults are the errors of decoding. If there are any, current has only the kind's resource, because the rest of the document
	// might lack its barriers.
	faults []error
	// doubt is set if it is not certain which API server serves the definition's group. The definition is in force nevertheless.
	doubt error
	good  *compile.Documents
}

type identity struct {
	uid, verbs, vouched string
	// claimed is the name of an APIService with a label that says that the API server has the group built in, although the group is
	// not known to be built in.
	claimed string
	// storedIn is the versions in which objects may be stored.
	storedIn   string
	generation int64
	served     bool
	// inBuiltIn means that the API server has the group built in.
	inBuiltIn bool
}

// counts reports whether a definition has a part in a compile: by its documents, or by the kind that it claims.
func (i *identity) counts() bool { return i.served || i.inBuiltIn }

// read updates the definitions and reports whether any changed that is served, or in a built-in group, or was before. The others have no documents: an API server
// that is busy may take minutes to accept a definition, and to compile all others meanwhile would only delay it. The API server accepts a
// definition in a group that it has built in, but does not serve it.
func (d *definitions) read(services *allowlist.Services) (bool, error) {
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
		inBuiltIn := slices.Contains(services.Own, group)
		id := identity{
			uid: string(object.GetUID()), generation: object.GetGeneration(), served: served(object, before) && !inBuiltIn, inBuiltIn: inBuiltIn,
			claimed:  services.Claimed[group],
			verbs:    object.GetAnnotations()[v1alpha1.PermissionVerbsAnnotation],
			vouched:  object.GetAnnotations()[v1alpha1.LosslessConversionAnnotation],
			storedIn: strings.Join(storedIn, ","),
		}
		// After a restore of etcd, a generation may occur a second time with another content.
		if before != nil && before.identity == id && before.from.sameSpecification(object) {
			before.from = object // The previous copy can be collected.
			continue
		}
		next := &definition{}
		if id.served {
			next = decode(object)
		}
		next.identity, next.from = id, object
		if id.served && id.claimed != "" {
			next.doubt = doubtful(name, group, id.claimed)
		}
		if before != nil && before.identity.uid == id.uid && id.served {
			next.good = before.good
		}
		d.known[name] = next
		changed = changed || id.counts() || before != nil && before.identity.counts()
	}
	for name, one := range d.known {
		if !seen[name] {
			delete(d.known, name)
			changed = changed || one.identity.counts()
		}
	}
	return changed, nil
}

// doubtful returns a warning for a group that only a label describes as built in. If fieldperm trusted the label, the barriers of
// the definition would be lost. The allowlist excludes such groups: if the label is right, stored objects are not custom resources.
func doubtful(name, group, service string) error {
	return &schema.Error{
		Source: admission.DocumentSource("CustomResourceDefinition", name), Pointer: "/spec/group",
		Message: fmt.Sprintf("group %q is labelled %s=%s, as if kube-apiserver served it without definitions: the barriers of this one hold, and granular passes nothing in the group: delete APIService %q, which kube-apiserver makes anew if a definition needs it; or upgrade fieldperm if the group is Kubernetes' own",
			group, allowlist.AutoManaged, allowlist.AutoManagedOnStart, service),
	}
}

// served reports whether the API server serves the definition under the kind that it names, or did so before. Users may write the
// status of a definition, so a change of the status alone must not remove barriers and the kind. A definition that claims a kind of
// another one was never served, and must not affect the other's kind.
func served(object *Definition, before *definition) bool {
	named, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	if before != nil && before.identity.uid == string(object.GetUID()) && before.identity.served && before.kind.Kind == named {
		return true
	}
	var is apiextensionsv1.CustomResourceDefinition
	is.Spec.Names.Kind = named
	status, _, err := unstructured.NestedMap(object.Object, "status")
	return err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(status, &is.Status) == nil && accepted(&is)
}

// accepted reports whether an API server serves the definition under the kind that it names. Either condition is sufficient for
// that (apiextensions-apiserver, pkg/apiserver/customresource_handler.go).
func accepted(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Status.AcceptedNames.Kind == crd.Spec.Names.Kind &&
		(apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established))
}

func decode(object *Definition) *definition {
	out := &definition{}
	out.kind = object.kind()
	source := admission.DocumentSource("CustomResourceDefinition", object.GetName())
	raw, err := object.json()
	if err != nil {
		out.faults = []error{&schema.Error{Source: source, Message: err.Error()}}
		return out
	}
	if out.current, out.faults = load.CRD(source, raw); len(out.faults) > 0 {
		// The rules for barriers do not change for this kind. They are found by its resource.
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		out.current = compile.Documents{Topologies: []compile.Topology{{Source: source, Plurals: map[runtimeschema.GroupVersionKind]string{out.kind.WithVersion(""): plural}}}}
	}
	return out
}

// documents returns the documents in force of every definition. For definitions in retreat, and for those that did not decode,
// these are the last valid documents.
func (d *definitions) documents(retreat map[string]bool) compile.Documents {
	parts := make([]compile.Documents, 0, len(d.known))
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
	return compile.Documents{}.Append(parts...)
}

// unknown returns the kinds of definitions that never were valid. Their barriers are unknown, so no other source may define these
// kinds: not even the built-in kinds, for an API that the server no longer has.
func (d *definitions) unknown() map[runtimeschema.GroupKind]bool {
	out := map[runtimeschema.GroupKind]bool{}
	for _, one := range d.known {
		if len(one.faults) > 0 && one.good == nil {
			out[one.kind] = true
		}
	}
	return out
}

// without returns the topologies without some kinds. It does not change the topologies.
func without(topologies []compile.Topology, kinds map[runtimeschema.GroupKind]bool) []compile.Topology {
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

// faults returns the errors of decoding and the doubts, in the order of names.
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

// kinds returns the kinds that definitions serve.
func (d *definitions) kinds() map[runtimeschema.GroupKind]bool {
	out := map[runtimeschema.GroupKind]bool{}
	for _, one := range d.known {
		out[one.kind] = one.identity.served
	}
	return out
}

// claims returns the kinds that definitions name, served or not.
func (d *definitions) claims() map[runtimeschema.GroupKind]bool {
	out := map[runtimeschema.GroupKind]bool{}
	for _, one := range d.known {
		out[one.from.kind()] = true
	}
	return out
}

// failing returns the definitions with a kind in failed that were valid before.
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

// settle stores the definitions that compiled as their last valid form.
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
