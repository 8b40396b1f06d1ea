package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// inquiry is what explain is asked about.
type inquiry struct {
	// name is the name by which the user calls the kind.
	name        string
	kind        runtimeschema.GroupVersionKind
	resource    string
	subresource string
	path        string
}

// ask finds the kind and the path in a text: KIND[/SUBRESOURCE][.PATH]. A dot may belong to the name of a resource (deployments.v1.apps)
// or begin the path. The longest name of a resource that is known counts, as in kubectl explain.
func (o *inquirer) ask(known *traced, text string) (*inquiry, error) {
	names := namesOf(known.compiled)
	// Slashes and dots in brackets belong to keys of maps.
	head, brackets := text, ""
	if i := strings.IndexByte(text, '['); i >= 0 {
		head, brackets = text[:i], text[i:]
	}
	name, below, hasSubresource := strings.Cut(head, "/")
	subresource, path := "", ""
	if hasSubresource {
		subresource, path, _ = strings.Cut(below, ".")
	}
	parts := strings.Split(name, ".")
	for n := len(parts); n > 0; n-- {
		if hasSubresource && n < len(parts) {
			break // Nothing but the name stands before the slash.
		}
		called := strings.Join(parts[:n], ".")
		found := names.find(called)
		if len(found) == 0 {
			continue
		}
		one, err := o.choose(found, called)
		if err != nil {
			return nil, err
		}
		if !hasSubresource {
			path = strings.Join(parts[n:], ".")
		}
		return &inquiry{name: called, kind: one.kind, resource: one.resource, subresource: subresource, path: path + brackets}, nil
	}
	return nil, names.unknown(name)
}

// choose returns the kind that is meant of those with a name: of the version of --api-version, else of the group that the cluster prefers,
// else of the first group, in the newest version that is served.
func (o *inquirer) choose(found []named, called string) (named, error) {
	if o.apiVersion != "" {
		at := slices.IndexFunc(found, func(n named) bool { return n.kind.GroupVersion().String() == o.apiVersion })
		if at < 0 {
			var versions []string
			for _, n := range found {
				versions = append(versions, n.kind.GroupVersion().String())
			}
			return named{}, fmt.Errorf("--api-version %q: has no %q: use %s", o.apiVersion, called, strings.Join(versions, " or "))
		}
		return found[at], nil
	}
	inOtherGroup := func(n named) bool { return n.served && n.kind.Group != found[0].kind.Group }
	if !slices.ContainsFunc(found, inOtherGroup) {
		return found[0], nil
	}
	if group := o.preferredGroup(called); group != nil && found[0].kind.Group != *group {
		if at := slices.IndexFunc(found, func(n named) bool { return n.kind.Group == *group && n.served }); at >= 0 {
			return found[at], nil
		}
	}
	return found[0], nil
}

// preferredGroup returns the group that the cluster prefers for a name without a group, nil if that is not known.
func (o *inquirer) preferredGroup(called string) *string {
	if o.offline() || strings.Contains(called, ".") {
		return nil
	}
	mapper, err := o.cluster.ToRESTMapper()
	if err != nil {
		return nil
	}
	resource, err := mapper.ResourceFor(runtimeschema.GroupVersionResource{Resource: called})
	if err != nil {
		return nil
	}
	return &resource.Group
}

// warnUnserved warns if the cluster does not serve the version of the kind. All built-in kinds are known, and other minors of Kubernetes serve others.
func (o *inquirer) warnUnserved(asked *inquiry) {
	if o.offline() {
		return
	}
	mapper, err := o.cluster.ToRESTMapper()
	if err != nil {
		return
	}
	gv := asked.kind.GroupVersion()
	if _, err := mapper.ResourceFor(gv.WithResource(asked.resource)); meta.IsNoMatchError(err) {
		o.warn("%s of %s are not served by this cluster: nobody can write them there", asked.resource, gv)
	}
}

// named is a version of a kind with the names by which users call it.
type named struct {
	kind     runtimeschema.GroupVersionKind
	resource string
	names    []string
	served   bool
}

// names are all kinds, in the order in which they are preferred: versions that are served first, then by group, the core group first,
// then new versions before old ones.
type names []named

func namesOf(s *schema.Schema) names {
	var out names
	for _, k := range s.Kinds() {
		t := k.Trace()
		all := append([]string{t.Resource.Resource, strings.ToLower(k.Kind)}, t.Names...)
		if endpoint.BuiltIn(t.Resource.Group, t.Resource.Resource) {
			all = append(all, shortNames(t.Resource)...)
		}
		out = append(out, named{k.GroupVersionKind, t.Resource.Resource, all, t.Served})
	}
	for gvk := range s.Failed() {
		plural := strings.ToLower(gvk.Kind)
		out = append(out, named{gvk, plural + "s", []string{plural, plural + "s"}, true})
	}
	slices.SortFunc(out, func(a, b named) int {
		if a.served != b.served {
			if a.served {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.kind.Group, b.kind.Group), version.CompareKubeAwareVersionStrings(b.kind.Version, a.kind.Version), cmp.Compare(a.kind.Kind, b.kind.Kind))
	})
	return out
}

// find returns the kinds with a name: NAME, NAME.GROUP or NAME.VERSION.GROUP.
func (n names) find(called string) []named {
	name, rest, qualified := strings.Cut(called, ".")
	name = strings.ToLower(name)
	var out []named
	for _, one := range n {
		if !slices.Contains(one.names, name) || schema.IsScale(one.kind.GroupKind()) {
			continue // A Scale is written through the resources of others.
		}
		v, group, _ := strings.Cut(rest, ".")
		if !qualified || rest == one.kind.Group || v == one.kind.Version && group == one.kind.Group {
			out = append(out, one)
		}
	}
	return out
}

// unknown returns the error for a name that no kind has.
func (n names) unknown(called string) error {
	name, _, _ := strings.Cut(called, ".")
	var all []string
	for _, one := range n {
		if one.served {
			all = append(all, one.names...)
		}
	}
	slices.Sort(all)
	if near := spelling.Nearest(name, slices.Compact(all)); near != "" && near != strings.ToLower(name) {
		return fmt.Errorf("kind %q is not known: use %q, or give its CustomResourceDefinition with --crd", called, near)
	}
	return fmt.Errorf("kind %q is not known: name one that kubectl api-resources lists, or give its CustomResourceDefinition with --crd", called)
}

// tree returns the tree of the kind in question, or of the body of its subresource.
func (q *inquiry) tree(known *traced) (*fieldtree.Kind, error) {
	ref := schema.ResourceRef{Group: q.kind.Group, Version: q.kind.Version, Resource: q.resource, Subresource: q.subresource}
	if err := known.Kind(q.kind); err != nil {
		return nil, err
	}
	if q.subresource == "" {
		return fieldtree.Of(known.compiled, q.kind, ref)
	}
	has := q.subresources(known)
	if !slices.Contains(has, q.subresource) {
		if len(has) == 0 {
			return nil, fmt.Errorf("%s/%s: %q has no subresource with fields: leave %q out", q.name, q.subresource, q.resource, q.subresource)
		}
		return nil, fmt.Errorf("%s/%s: %q has no subresource %q with fields: use %s", q.name, q.subresource, q.resource, q.subresource, strings.Join(has, " or "))
	}
	e, _ := endpoint.Lookup(q.kind.Group, q.resource, q.subresource)
	body, _ := q.body(known, &e)
	return fieldtree.Of(known.compiled, body, ref)
}

// body returns the kind of the body of a subresource, and whether it is known.
func (q *inquiry) body(known *traced, e *endpoint.Endpoint) (runtimeschema.GroupVersionKind, bool) {
	if e.Body.Kind == "" || e.Body.Kind == "*" || e.GroupKind() == q.kind.GroupKind() {
		return q.kind, true
	}
	all := namesOf(known.compiled)
	at := slices.IndexFunc(all, func(n named) bool { return n.kind.GroupKind() == e.GroupKind() })
	if at < 0 {
		return q.kind, false
	}
	return all[at].kind, true
}

// subresources returns the subresources of the resource that write fields of an object.
func (q *inquiry) subresources(known *traced) []string {
	if !endpoint.BuiltIn(q.kind.Group, q.resource) {
		return q.declared(known)
	}
	var out []string
	for _, e := range endpoint.All() {
		if e.Group != q.kind.Group || e.Resource != q.resource || e.Subresource == "" || e.Storage == "" {
			continue
		}
		if _, isKnown := q.body(known, &e); isKnown {
			out = append(out, e.Subresource)
		}
	}
	return out
}

// declared returns the subresources that the definition of a custom resource declares. Of the resource of another API server it is not
// known which it has.
func (q *inquiry) declared(known *traced) []string {
	both := []string{"scale", "status"}
	for i := range known.Documents.Topologies {
		t := &known.Documents.Topologies[i]
		inside, isDefinition := t.StatusInside[q.kind]
		if !isDefinition {
			continue
		}
		_, scales := t.Replicas[q.kind]
		return slices.DeleteFunc(both, func(s string) bool { return s == "scale" && !scales || s == "status" && inside })
	}
	return both
}
