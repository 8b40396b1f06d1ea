package fieldrole

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Kinds are the kinds of a traced compile.
type Kinds struct {
	compiled  *schema.Schema
	documents compile.Documents
}

// New returns the kinds of a traced compile of documents.
func New(compiled *schema.Schema, documents compile.Documents) *Kinds {
	return &Kinds{compiled, documents}
}

// Target is one version of a kind, with the resource that stores its objects.
type Target struct {
	runtimeschema.GroupVersionKind
	Resource string
	kinds    *Kinds
	// main is the tree of the object, once it was needed.
	main *fieldtree.Kind
	// others are the other versions that clients may send.
	others []runtimeschema.GroupVersionKind
}

// Find returns the kind that a text names: GROUP/VERSION/KIND, VERSION/KIND of the core group, KIND or KIND.GROUP. The name of the resource may
// stand for that of the kind. Without a version it is the newest one that is served and loses no field.
func (k *Kinds) Find(text string) (*Target, error) {
	group, v, name, hasGroup := "", "", text, true
	switch parts := strings.Split(text, "/"); len(parts) {
	case 1:
		name, group, hasGroup = strings.Cut(text, ".")
	case 2:
		v, name = parts[0], parts[1]
	case 3:
		group, v, name = parts[0], parts[1], parts[2]
	default:
		return nil, fmt.Errorf("kind %q: is not of the form GROUP/VERSION/KIND: write it like apps/v1/Deployment", text)
	}
	found := k.all(func(of runtimeschema.GroupVersionKind, resource string) bool {
		return (strings.EqualFold(of.Kind, name) || strings.EqualFold(resource, name)) && (!hasGroup || of.Group == group)
	})
	if len(found) == 0 {
		return nil, k.unknown(text, name)
	}
	for i := range found {
		if found[i].Group != found[0].Group {
			return nil, fmt.Errorf("kind %q: is a kind of the groups %q and %q: write GROUP/VERSION/KIND, as in %s", text, found[0].Group, found[i].Group, found[0].text())
		}
	}
	return choose(fmt.Sprintf("kind %q", text), found, v)
}

// Resource returns the kind whose objects a resource stores. v is "" for the version that Find would choose.
func (k *Kinds) Resource(group, resource, v string) (*Target, error) {
	found := k.all(func(of runtimeschema.GroupVersionKind, name string) bool {
		return of.Group == group && name == resource
	})
	if len(found) == 0 {
		return nil, k.unknownResource(group, resource)
	}
	return choose(fmt.Sprintf("resource %q", runtimeschema.GroupResource{Group: group, Resource: resource}), found, v)
}

// all returns the kinds that match, new versions first.
func (k *Kinds) all(match func(of runtimeschema.GroupVersionKind, resource string) bool) []*Target {
	var out []*Target
	for _, kind := range k.compiled.Kinds() {
		t := kind.Trace()
		if t != nil && t.Served && !kind.IsScale() && t.Resource.Group == kind.Group && !k.isGone(kind.GroupVersionKind, t.Resource.Resource) && match(kind.GroupVersionKind, t.Resource.Resource) {
			out = append(out, &Target{GroupVersionKind: kind.GroupVersionKind, Resource: t.Resource.Resource, kinds: k})
		}
	}
	slices.SortFunc(out, func(a, b *Target) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	return out
}

// isGone reports whether the built-in types still have a kind whose resource no API server serves any more, such as Deployments of extensions.
func (k *Kinds) isGone(of runtimeschema.GroupVersionKind, resource string) bool {
	return !endpoint.BuiltIn(of.Group, resource) && slices.ContainsFunc(k.documents.Topologies, func(t compile.Topology) bool {
		_, has := t.Kinds[of]
		return has && t.RoundTrips
	})
}

// choose returns the version that is asked for, else the newest one that loses no field.
func choose(what string, found []*Target, v string) (*Target, error) {
	var names []string
	var lossy []*Target
	var out *Target
	for _, t := range found {
		names = append(names, t.Version)
		tree, err := t.tree("")
		switch {
		case err != nil:
			return nil, err
		case tree.Lossy:
			lossy = append(lossy, t)
		case out == nil && (v == "" || v == t.Version):
			out = t
		}
	}
	if out == nil && v != "" && !slices.Contains(names, v) {
		return nil, fmt.Errorf("%s: has no version %q: use %s", what, v, strings.Join(names, " or "))
	}
	if out == nil {
		cure := "make it lossless, or grant update"
		if at := slices.IndexFunc(found, func(t *Target) bool { return !slices.Contains(lossy, t) }); at >= 0 {
			cure = "use version " + found[at].Version
		}
		return nil, fmt.Errorf("%s: a write through version %q may change fields that it does not show, so that granular verbs of single fields do not cover it: %s", what, cmp.Or(v, names[0]), cure)
	}
	for _, t := range found {
		if t != out {
			out.others = append(out.others, t.GroupVersionKind)
		}
	}
	return out, nil
}

func (t *Target) text() string { return strings.TrimPrefix(t.Group+"/"+t.Version+"/"+t.Kind, "/") }

func (k *Kinds) unknown(text, name string) error {
	known := map[string]string{}
	var names []string
	for _, t := range k.all(func(runtimeschema.GroupVersionKind, string) bool { return true }) {
		for _, n := range []string{t.Kind, t.Resource} {
			if known[n] == "" {
				known[n] = t.text()
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	if near := spelling.Nearest(name, names); near != "" {
		return fmt.Errorf("kind %q is not known: use %s, or give its CustomResourceDefinition with --crd", text, known[near])
	}
	return fmt.Errorf("kind %q is not known: give its CustomResourceDefinition with --crd", text)
}

func (k *Kinds) unknownResource(group, resource string) error {
	of := runtimeschema.GroupResource{Group: group, Resource: resource}.String()
	var names, groups []string
	for _, t := range k.all(func(runtimeschema.GroupVersionKind, string) bool { return true }) {
		if t.Group == group {
			names = append(names, t.Resource)
		}
		if t.Resource == resource && !slices.Contains(groups, t.Group) {
			groups = append(groups, t.Group)
		}
	}
	if len(groups) > 0 {
		return fmt.Errorf("resource %q is not known: use group %q", of, groups[0])
	}
	if near := spelling.Nearest(resource, names); near != "" {
		return fmt.Errorf("resource %q is not known: use %q, or give its CustomResourceDefinition with --crd", of, near)
	}
	return fmt.Errorf("resource %q is not known: give its CustomResourceDefinition with --crd", of)
}

// tree returns the kind as it is written through the resource, or through a subresource that takes the kind itself.
func (t *Target) tree(subresource string) (*fieldtree.Kind, error) {
	return fieldtree.Of(t.kinds.compiled, t.GroupVersionKind, t.ref(t.GroupVersionKind, subresource))
}

func (t *Target) ref(of runtimeschema.GroupVersionKind, subresource string) schema.ResourceRef {
	return schema.ResourceRef{Group: t.Group, Version: of.Version, Resource: t.Resource, Subresource: subresource}
}

// hasStatus reports whether the status is written through the subresource status alone.
func (t *Target) hasStatus() bool {
	if inside, known := t.declared(func(d *compile.Topology) (bool, bool) {
		inside, known := d.StatusInside[t.GroupVersionKind]
		return inside, known
	}); known {
		return !inside
	}
	e, known := endpoint.Lookup(t.Group, t.Resource, "status")
	return known && e.Storage != ""
}

// replicas returns the path that the subresource scale writes, "" if there is none.
func (t *Target) replicas() string {
	path := ""
	_, declared := t.declared(func(d *compile.Topology) (bool, bool) {
		if p, has := d.Replicas[t.GroupVersionKind]; has {
			path = p
		}
		_, known := d.StatusInside[t.GroupVersionKind]
		return false, known
	})
	if declared || path != "" {
		return path
	}
	if e, known := endpoint.Lookup(t.Group, t.Resource, "scale"); known && endpoint.BuiltIn(t.Group, t.Resource) && len(e.Fields) > 0 {
		return e.Fields[0].Stored()
	}
	return ""
}

// declared asks the documents about a definition.
func (t *Target) declared(ask func(*compile.Topology) (value, known bool)) (value, known bool) {
	for i := range t.kinds.documents.Topologies {
		if v, k := ask(&t.kinds.documents.Topologies[i]); k {
			value, known = v, true
		}
	}
	return value, known
}
