package audit

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// all returns the resources of each name of a verb. Subresources are left out, because each of their verbs is one of the object's or of the
// kind that it shows.
func (k *Known) all() map[string][]Resource {
	if k.names != nil {
		return k.names
	}
	k.names = map[string][]Resource{}
	for r, kinds := range k.kinds {
		at := Resource{r.Group, r.Resource}
		for _, gvk := range kinds {
			kind, err := k.compiled.Kind(gvk)
			if err != nil {
				continue
			}
			kind.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
				for _, p := range n.Permissions() {
					if name := p.Base().Name(); !slices.Contains(k.names[name], at) {
						k.names[name] = append(k.names[name], at)
					}
				}
			})
		}
	}
	for _, gvk := range k.compiled.Kinds() {
		if gvk.IsScale() {
			gvk.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
				for _, p := range n.Permissions() {
					if name := p.Base().Name(); k.names[name] == nil {
						k.names[name] = []Resource{}
					}
				}
			})
		}
	}
	for name := range k.names {
		slices.SortFunc(k.names[name], func(a, b Resource) int { return strings.Compare(a.String(), b.String()) })
	}
	return k.names
}

// nearestVerb returns the known verb that is closest to a name, "" if none is close. Verbs with a domain come last.
func (k *Known) nearestVerb(name string) string {
	var all []string
	for known := range k.all() {
		all = append(all, known)
	}
	slices.SortFunc(all, func(a, b string) int {
		if x, y := strings.Contains(a, "/"), strings.Contains(b, "/"); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	if near := spelling.Nearest(name, all); near != "" {
		return verbs.Prefix + near
	}
	return ""
}

// verbOfField returns the verb of the field with a name, and its path, "" if there is none: of several fields the least deep one. People take the name of a
// field for its verb.
func (k *Known) verbOfField(on []Resource, name string) (verb, field string) {
	var at fieldpath.Pattern
	for _, r := range on {
		resource, _ := r.split()
		for _, gvk := range k.kinds[runtimeschema.GroupResource{Group: r.Group, Resource: resource}] {
			kind, err := k.compiled.Kind(gvk)
			if err != nil {
				continue
			}
			kind.Walk(func(p fieldpath.Pattern, n *schema.Node) {
				last := len(p) - 1
				if last < 0 || !strings.EqualFold(p[last].Name, name) || len(n.Permissions()) == 0 || at != nil && len(at) <= len(p) {
					return
				}
				at, verb = slices.Clone(p), n.Permissions()[0].Base().String()
			})
		}
	}
	return verb, at.String()
}

// through returns the resources and subresources with which a resource is written and on which a verb has an effect.
func (k *Known) through(group, resource, name string) []Resource {
	var out []Resource
	for _, subresource := range append([]string{""}, k.subresources(group, resource)...) {
		r := Resource{group, resource}
		if subresource != "" {
			r.Name += "/" + subresource
		}
		if w := k.of(r); w != nil && w.verbs[name] != nil && k.effective(r, w.verbs[name]) {
			out = append(out, r)
		}
	}
	return out
}

// subresources returns the subresources of a resource that write fields of an object.
func (k *Known) subresources(group, resource string) []string {
	var out []string
	if !endpoint.BuiltIn(group, resource) {
		for _, subresource := range []string{"scale", "status"} {
			if k.serves(group, resource, subresource) {
				out = append(out, subresource)
			}
		}
		return out
	}
	for _, e := range endpoint.All() {
		if e.Group == group && e.Resource == resource && e.Subresource != "" && e.Storage != "" {
			out = append(out, e.Subresource)
		}
	}
	return out
}

// nearestResource returns what a resource in a rule is probably meant to be, as it is written: the resource in another group, the plural, or a
// near name. It returns "" if nothing is near.
func (k *Known) nearestResource(groups []string, name string) string {
	resource, subresource, _ := strings.Cut(name, "/")
	var inGroups, elsewhere []string
	for r := range k.kinds {
		if slices.Contains(groups, r.Group) {
			inGroups = append(inGroups, r.Resource)
		}
		if r.Resource == resource {
			elsewhere = append(elsewhere, r.Group)
		}
	}
	slices.Sort(inGroups)
	slices.Sort(elsewhere)
	if len(elsewhere) > 1 {
		// The old group is served by no API server of today.
		elsewhere = slices.DeleteFunc(elsewhere, func(group string) bool { return group == "extensions" })
	}
	add := func(found string) string {
		if subresource != "" {
			found += "/" + subresource
		}
		return found
	}
	if len(elsewhere) > 0 && !slices.Contains(inGroups, resource) {
		return "apiGroups: [" + quoted(elsewhere) + "]"
	}
	if near := spelling.Nearest(resource, inGroups); near != "" && near != resource {
		return add(near)
	}
	if has := k.subresourcesIn(groups, resource); len(has) > 0 {
		if near := spelling.Nearest(subresource, has); near != "" {
			return resource + "/" + near
		}
	}
	return ""
}

func (k *Known) subresourcesIn(groups []string, resource string) []string {
	var out []string
	for _, group := range groups {
		if k.has(group, resource) {
			out = append(out, k.subresources(group, resource)...)
		}
	}
	return out
}
