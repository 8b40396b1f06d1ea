package audit

import (
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// definitionKind is the kind of objects whose annotations and schemas make barriers.
const definitionKind = "CustomResourceDefinition"

// Barrier is a verb that is a barrier on resources.
type Barrier struct {
	Location
	Object Ref
	Path   string
	Verb   verbs.Verb
	// Resources are those with a field behind the barrier. They have no wildcards.
	Resources []Resource
	// BuiltIn means that the catalogue makes it.
	BuiltIn bool
}

// readBarriers collects the barriers of the documents that refuse writes.
func (k *Known) readBarriers(documents *compile.Documents) {
	borne := map[string]map[string][]Resource{}
	for _, b := range schemacheck.NewSets(*documents, k.compiled).Barriers() {
		name, group, _ := strings.Cut(b.Resource, ".")
		if borne[b.Source] == nil {
			borne[b.Source] = map[string][]Resource{}
		}
		borne[b.Source][b.Verb] = append(borne[b.Source][b.Verb], Resource{group, name})
	}
	for i := range documents.Uncovered {
		d := &documents.Uncovered[i]
		for j, text := range d.Set.Spec.UncoveredPermissions {
			verb, err := verbs.Parse(text)
			if resources := borne[d.Source][text]; err == nil && len(resources) > 0 && d.Set.Spec.Denies() {
				k.barriers = append(k.barriers, Barrier{
					Location: Location{File: fileOf(d.Source)}, Object: Ref{Kind: v1alpha1.UncoveredPermissionSetKind, Name: d.Set.Name},
					Path: fmt.Sprintf("spec.uncoveredPermissions[%d]", j), Verb: verb, Resources: resources,
				})
			}
		}
	}
	for i := range documents.Topologies {
		k.readExtensions(&documents.Topologies[i])
	}
	for i := range documents.Permissions {
		d := &documents.Permissions[i]
		for _, e := range d.Entries {
			verb, err := verbs.New(e.Verb)
			if err != nil || !e.IsBarrier() {
				continue
			}
			b := Barrier{
				Location: Location{File: fileOf(d.Source)}, Object: documentRef(d), Path: pathOf(e.Pointer), Verb: verb,
				Resources: k.resourcesOf(d.Group, d.Kind), BuiltIn: d.Rank <= compile.RankCatalogue,
			}
			same := func(have Barrier) bool { return have.Object == b.Object && have.Verb == b.Verb }
			if len(b.Resources) > 0 && !slices.ContainsFunc(k.barriers, same) {
				k.barriers = append(k.barriers, b)
			}
		}
	}
}

// readExtensions collects the barriers of the OpenAPI document of an API server.
func (k *Known) readExtensions(t *compile.Topology) {
	hasBarrier := false
	for _, entries := range t.TypePermissions {
		hasBarrier = hasBarrier || slices.ContainsFunc(entries, compile.Entry.IsBarrier)
	}
	if !hasBarrier {
		return
	}
	seen := map[string]bool{}
	for gvk := range t.Kinds {
		kind, err := k.compiled.Kind(gvk)
		resources := k.resourcesOf(gvk.Group, gvk.Kind)
		if err != nil || len(resources) == 0 {
			continue
		}
		kind.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
			for _, p := range n.Permissions() {
				about := p.Base().Name() + " " + gvk.GroupKind().String()
				isOfDocument := slices.ContainsFunc(p.Origins(), func(o schema.Origin) bool { return o.Form == schema.FormOpenAPI })
				if p.MayBar() && isOfDocument && !seen[about] {
					seen[about] = true
					k.barriers = append(k.barriers, Barrier{Object: Ref{Kind: "OpenAPI", Name: t.Source}, Path: gvk.Kind, Verb: p.Base(), Resources: resources})
				}
			}
		})
	}
}

// resourcesOf returns the resources of a kind.
func (k *Known) resourcesOf(group, kind string) []Resource {
	var out []Resource
	for r, kinds := range k.kinds {
		if slices.ContainsFunc(kinds, func(gvk runtimeschema.GroupVersionKind) bool { return gvk.Group == group && gvk.Kind == kind }) {
			out = append(out, Resource{r.Group, r.Resource})
		}
	}
	slices.SortFunc(out, func(a, b Resource) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// documentRef returns the object of a document. One of a file has the place in the file as its name.
func documentRef(d *compile.PermissionDocument) Ref {
	for _, kind := range []string{v1alpha1.PermissionSchemaKind, definitionKind} {
		if name, ok := strings.CutPrefix(d.Source, kind+" "); ok {
			return Ref{Kind: kind, Name: name}
		}
	}
	if d.Form == schema.FormPermissionSchema {
		return Ref{Kind: v1alpha1.PermissionSchemaKind, Name: d.Source}
	}
	return Ref{Kind: definitionKind, Name: d.Source}
}

// fileOf returns the file of a source, "" for an object of a cluster, whose source is its kind and its name.
func fileOf(source string) string {
	file, _, _ := strings.Cut(source, "#")
	if kind, _, spaced := strings.Cut(file, " "); spaced && (kind == v1alpha1.PermissionSchemaKind || kind == v1alpha1.UncoveredPermissionSetKind || kind == definitionKind) {
		return ""
	}
	return file
}

// pathOf returns the path of an entry: that of its JSON pointer, such as spec.permissions[2].
func pathOf(pointer string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch {
		case part != "" && strings.Trim(part, "0123456789") == "":
			out.WriteString("[" + part + "]")
		case out.Len() > 0:
			out.WriteString("." + part)
		default:
			out.WriteString(part)
		}
	}
	return out.String()
}

// passes reports whether a rule grants a verb that passes the barrier on one of its resources. One that is more specific passes it for a part
// of the fields.
func (k *Known) passes(b *Barrier, r *keptRule, isNamespaced bool) bool {
	for _, at := range b.Resources {
		resource, _ := at.split()
		if r.about(at.Group, resource) && (!isNamespaced || inNamespace(at)) && slices.ContainsFunc(r.verbs, func(text string) bool { return k.passesAt(b, at, text) }) {
			return true
		}
	}
	return false
}

func (k *Known) passesAt(b *Barrier, at Resource, text string) bool {
	if text == "*" {
		return true
	}
	verb, err := verbs.Parse(text)
	if err != nil || verb == verbs.MarkerVerb() {
		return false
	}
	if verb.Name() == b.Verb.Name() {
		return !b.Verb.HasParameter() || verb == b.Verb
	}
	w := k.of(at)
	return w != nil && w.verbs[verb.Name()] != nil && w.verbs[verb.Name()].within[b.Verb.Name()]
}

// behind returns the barriers that a rule with the verb "*" passes. A rule that holds in a namespace passes none of resources without one.
func (k *Known) behind(r *keptRule, isNamespaced bool) []*Barrier {
	var out []*Barrier
	for i := range k.barriers {
		if b := &k.barriers[i]; slices.ContainsFunc(b.Resources, func(at Resource) bool {
			resource, _ := at.split()
			return r.about(at.Group, resource) && (!isNamespaced || inNamespace(at))
		}) {
			out = append(out, b)
		}
	}
	return out
}
