package generators

import (
	"cmp"
	"maps"
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
// Without an API server no kind tells its resource: plurals has it for custom resources, and for
// others it is guessed as Kubernetes does (meta.UnsafeGuessKindToResource), which is right for every
// built-in kind.
func Uncovered(s *schema.Schema, sets []schema.UncoveredDocument, plurals map[runtimeschema.GroupKind]string) []v1alpha1.ResourceRule {
	r := rules{}
	for _, k := range s.Kinds() {
		if k.MayBar() {
			r.addKind(k, plurals)
		}
	}
	for i := range sets {
		r.addSet(&sets[i].Set.Spec, s)
	}
	return r.list()
}

// rules maps API groups to resources.
type rules map[string]map[string]bool

func (r rules) add(group string, resources ...string) {
	if r[group] == nil {
		r[group] = map[string]bool{}
	}
	for _, resource := range resources {
		r[group][resource] = true
	}
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
	resource := plurals[k.GroupKind()]
	if resource == "" {
		plural, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
		resource = plural.Resource
	}
	r.add(k.Group, resource)
	// Every other top-level field is taken back when it is changed through /status.
	if k.Root.Map() == nil || bars(k, "metadata") || bars(k, "status") {
		r.add(k.Group, resource+"/status")
	}
	if bars(k, "spec") {
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

// list returns one rule for each group, sorted, without what a wildcard covers already: the API
// server refuses some of that.
func (r rules) list() []v1alpha1.ResourceRule {
	every := r["*"]
	var out []v1alpha1.ResourceRule
	for _, group := range slices.SortedFunc(maps.Keys(r), cmp.Compare) {
		var names []string
		for name := range r[group] {
			if !covered(r[group], name) && (group == "*" || !every[name] && !covered(every, name)) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if len(names) > 0 {
			out = append(out, v1alpha1.ResourceRule{APIGroups: []string{group}, Resources: names})
		}
	}
	return out
}

// covered reports whether another name with a wildcard stands for name too. In webhook rules "*" is
// every resource without its subresources.
func covered(names map[string]bool, name string) bool {
	resource, subresource, isSubresource := strings.Cut(name, "/")
	if !isSubresource {
		return name != "*" && names["*"] || names["*/*"]
	}
	return name != "*/*" && names["*/*"] ||
		resource != "*" && names["*/"+subresource] ||
		subresource != "*" && names[resource+"/*"]
}
