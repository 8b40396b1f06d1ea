package generators

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// Uncovered returns the webhook rules of the resources with barriers and of those of their
// subresources that let a guarded field through (W2), for Options.Uncovered.
//
// No kind tells its resource: plurals has it for custom resources, and for others it is guessed as
// Kubernetes does (meta.UnsafeGuessKindToResource), which is right for every built-in kind.
func Uncovered(s *schema.Schema, sets []schema.UncoveredDocument, plurals map[runtimeschema.GroupKind]string) []v1alpha1.ResourceRule {
	r := rules{}
	for _, k := range s.Kinds() {
		if k.MayBar() || k.MayBarElsewhere() {
			r.addKind(k, plurals)
		}
	}
	for i := range sets {
		r.addSet(&sets[i].Set.Spec, s)
	}
	return r.list()
}

// UncoveredKind returns those of the rules that are for the barriers in the schemas of one kind.
func UncoveredKind(s *schema.Schema, kind runtimeschema.GroupKind, plurals map[runtimeschema.GroupKind]string) []v1alpha1.ResourceRule {
	r := rules{}
	for _, k := range s.Kinds() {
		if k.GroupKind() == kind && (k.MayBar() || k.MayBarElsewhere()) {
			r.addKind(k, plurals)
		}
	}
	return r.list()
}

// UncoveredSet returns those of the rules that are for one UncoveredPermissionSet.
func UncoveredSet(s *schema.Schema, spec *v1alpha1.UncoveredPermissionSetSpec) []v1alpha1.ResourceRule {
	r := rules{}
	r.addSet(spec, s)
	return r.list()
}

// Resource returns the resource of a kind, as Uncovered does.
func Resource(kind runtimeschema.GroupKind, plurals map[runtimeschema.GroupKind]string) string {
	if resource := plurals[kind]; resource != "" {
		return resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return plural.Resource
}

// place is a resource and its subresource, either of them "*".
type place struct{ group, resource, subresource string }

// body tells where a kind is the body of a subresource, rather than a resource of its own.
func body(kind runtimeschema.GroupKind) (place, bool) {
	switch kind {
	case runtimeschema.GroupKind{Group: "autoscaling", Kind: "Scale"}:
		return place{"*", "*", "scale"}, true
	case runtimeschema.GroupKind{Group: "policy", Kind: "Eviction"}:
		return place{"", "pods", "eviction"}, true
	case runtimeschema.GroupKind{Kind: "Binding"}:
		return place{"", "pods", "binding"}, true
	case runtimeschema.GroupKind{Group: "authentication.k8s.io", Kind: "TokenRequest"}:
		return place{"", "serviceaccounts", "token"}, true
	}
	return place{}, false
}

// alsoWrittenBy returns the subresources beside status and scale that write their resource's object.
func alsoWrittenBy(resource string) []string {
	switch resource {
	case "pods":
		return []string{"ephemeralcontainers", "resize"}
	case "namespaces":
		return []string{"finalize"}
	case "certificatesigningrequests":
		return []string{"approval"}
	case "*":
		return slices.Concat(alsoWrittenBy("pods"), alsoWrittenBy("namespaces"), alsoWrittenBy("certificatesigningrequests"))
	}
	return nil
}

func (r rules) addKind(k *schema.Kind, plurals map[runtimeschema.GroupKind]string) {
	if at, ok := body(k.GroupKind()); ok {
		r.add(at.group, at.resource+"/"+at.subresource)
		// A Binding may also be created by itself.
		if k.Kind != "Binding" {
			return
		}
	}
	resource := Resource(k.GroupKind(), plurals)
	r.add(k.Group, resource)
	// Every other top-level field is taken back when it is changed through /status, but not what the version lost.
	if k.MayBarElsewhere() || k.Root.Map() == nil || bars(k, "metadata") || bars(k, "status") {
		r.add(k.Group, resource+"/status")
	}
	if k.MayBarElsewhere() || bars(k, "spec") {
		r.add(k.Group, resource+"/scale")
	}
	for _, subresource := range alsoWrittenBy(resource) {
		r.add(k.Group, resource+"/"+subresource)
	}
}

// bars reports whether there is a barrier at a top-level field or below.
func bars(k *schema.Kind, field string) bool {
	found := false
	if k.Root.Map() != nil {
		part := schema.Kind{GroupVersionKind: k.GroupVersionKind, Root: k.Root.Map().Child(field)}
		part.Walk(func(_ schema.Pattern, n *schema.Node) {
			found = found || slices.ContainsFunc(n.Permissions(), (*schema.Permission).MayBar)
		})
	}
	return found
}

// addSet adds what an UncoveredPermissionSet names. There a resource stands for its subresources; of
// those, only the ones that write its object can hold a guarded field, and the ones whose body
// itself has the verb. granular:* guards every body.
func (r rules) addSet(spec *v1alpha1.UncoveredPermissionSetSpec, s *schema.Schema) {
	resources := spec.Resources
	if len(resources) == 0 {
		resources = []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}
	}
	for _, rule := range resources {
		for _, resource := range rule.Resources {
			names := []string{resource}
			if !strings.Contains(resource, "/") {
				names = append(names, writers(resource, spec.UncoveredPermissions, s)...)
			}
			for _, group := range rule.APIGroups {
				r.add(group, names...)
			}
		}
	}
}

func writers(resource string, uncovered []string, s *schema.Schema) []string {
	if slices.Contains(uncovered, verbs.All().String()) {
		return []string{resource + "/*"}
	}
	out := []string{resource + "/status", resource + "/scale"}
	for _, subresource := range alsoWrittenBy(resource) {
		out = append(out, resource+"/"+subresource)
	}
	for _, k := range s.Kinds() {
		at, ok := body(k.GroupKind())
		if !ok || resource != "*" && at.resource != "*" && resource != at.resource {
			continue
		}
		k.Walk(func(_ schema.Pattern, n *schema.Node) {
			if slices.ContainsFunc(n.Permissions(), func(p *schema.Permission) bool { return named(uncovered, p.Base()) }) {
				out = append(out, resource+"/"+at.subresource)
			}
		})
	}
	return out
}

// named reports whether one of the verbs, with a parameter or without, has the name of v.
func named(uncovered []string, v verbs.Verb) bool {
	return slices.ContainsFunc(uncovered, func(text string) bool {
		u, err := verbs.Parse(text)
		return err == nil && u.Name() == v.Name()
	})
}
