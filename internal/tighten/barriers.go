package tighten

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/sets"
	"github.com/fieldperm/fieldperm/verbs"
)

// Barriers are the barriers of a cluster, or of files: those of the schemas of kinds, and those of all UncoveredPermissionSets, whatever
// their actions. Every condition counts as true. update and patch pass no barrier, so they do not cover a granular verb that may pass one.
// The zero Barriers know no kind: every granular verb may pass a barrier. They are not safe for concurrent use.
type Barriers struct {
	// Unknown are resources of which nothing is known: their verbs pass no barrier. It is for proposals from files without the schemas of
	// a cluster. Such a proposal is not proven, and its reader must be told.
	Unknown bool

	compiled *schema.Schema
	sets     []sets.Document
	fault    func(runtimeschema.GroupVersionKind) error
	// kinds are the kinds of a resource, in all versions.
	kinds  map[runtimeschema.GroupResource][]runtimeschema.GroupVersionKind
	chains map[runtimeschema.GroupResource]*barred
	cache  map[barrierQuestion][]string
}

type barrierQuestion struct {
	resource Resource
	verb     string
}

// NewBarriers returns the barriers of documents and of the schema that they compile to. fault says why the barriers of a kind are not
// known, nil if they are.
func NewBarriers(documents compile.Documents, compiled *schema.Schema, fault func(runtimeschema.GroupVersionKind) error) *Barriers {
	b := &Barriers{
		compiled: compiled, sets: documents.Uncovered, fault: fault,
		kinds: map[runtimeschema.GroupResource][]runtimeschema.GroupVersionKind{}, chains: map[runtimeschema.GroupResource]*barred{}, cache: map[barrierQuestion][]string{},
	}
	plurals := map[runtimeschema.GroupVersionKind]string{}
	for i := range documents.Topologies {
		t := &documents.Topologies[i]
		for gvk := range t.Kinds {
			plural, ok := t.Plurals[gvk]
			if !ok {
				guessed, _ := meta.UnsafeGuessKindToResource(gvk)
				plural = guessed.Resource
			}
			plurals[gvk] = plural // The last topology with a kind counts.
		}
	}
	for gvk, plural := range plurals {
		r := runtimeschema.GroupResource{Group: gvk.Group, Resource: plural}
		b.kinds[r] = append(b.kinds[r], gvk)
	}
	return b
}

// Passed names the barriers that a verb may pass on a resource, which may have "*" for its group or its name.
func (b *Barriers) Passed(r Resource, verb string) []string {
	v, err := verbs.Parse(verb)
	if err != nil || v == verbs.MarkerVerb() {
		return nil
	}
	switch {
	case b == nil || b.compiled == nil && !b.Unknown:
		return []string{"a barrier, because no schema is known"}
	case b.compiled == nil:
		return nil
	}
	q := barrierQuestion{r, verb}
	out, ok := b.cache[q]
	if !ok {
		for _, main := range b.mains(r) {
			for _, text := range b.of(main).passed(v) {
				if !slices.Contains(out, text) {
					out = append(out, text)
				}
			}
		}
		slices.Sort(out)
		b.cache[q] = out
	}
	return out
}

// mains returns the resources that a resource of a rule is or is a part of.
func (b *Barriers) mains(r Resource) []runtimeschema.GroupResource {
	name, subresource := r.Split()
	if r.Group != rbacv1.APIGroupAll && name != rbacv1.ResourceAll {
		return []runtimeschema.GroupResource{{Group: r.Group, Resource: name}}
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Name}}
	var out []runtimeschema.GroupResource
	for known := range b.kinds {
		one := Resource{known.Group, known.Resource}
		if subresource != "" {
			one.Name += "/" + subresource
		}
		if matches(&rule, one) {
			out = append(out, known)
		}
	}
	return out
}

// barred are the barriers on the objects of a resource, at all of its subresources, because the owners of a field are written at others.
type barred struct {
	// whole is set if it is not known which verbs pass a barrier, with the reason.
	whole string
	// chains have the permissions on the way to each guarded place, from general to specific.
	chains []chain
	sets   []barrier
}

// barrier is a verb of an UncoveredPermissionSet.
type barrier struct {
	verb   verbs.Verb
	source string
}

// chain are the permissions on the way to a place of a kind.
type chain struct {
	kind        string
	root        *schema.Node
	at          fieldpath.Pattern
	permissions []*schema.Permission
	// depths are the lengths of the paths of the permissions.
	depths []int
}

// maxPlaces bounds the guarded places of a kind, because a schema may unfold without bound.
const maxPlaces = 1 << 16

// of finds the barriers of a resource.
func (b *Barriers) of(main runtimeschema.GroupResource) *barred {
	if known := b.chains[main]; known != nil {
		return known
	}
	out := &barred{}
	b.chains[main] = out
	for i := range b.sets {
		set := &b.sets[i]
		if !names(&set.Set.Spec, main) {
			continue
		}
		for _, text := range set.Set.Spec.UncoveredPermissions {
			if v, err := verbs.Parse(text); err == nil && v != verbs.MarkerVerb() {
				out.sets = append(out.sets, barrier{v, set.Source})
			}
		}
	}
	kinds, fault := b.bodies(main)
	switch {
	case fault != nil && !b.Unknown:
		out.whole = fmt.Sprintf("a barrier, because those of %s are not known: %v", main, fault)
		return out
	case len(kinds) == 0 && !b.Unknown:
		out.whole = fmt.Sprintf("a barrier, because those of %s are not known: give its definition", main)
		return out
	}
	for _, k := range kinds {
		if len(out.sets) == 0 && !k.MayBar() {
			continue
		}
		found, complete := chainsOf(k)
		if !complete {
			out.whole = fmt.Sprintf("a barrier, because kind %s has too many guarded fields", k.GroupVersionKind.Kind)
			return out
		}
		out.chains = append(out.chains, found...)
	}
	return out
}

// names reports whether a set names a resource or one of its subresources, under any name of its objects.
func names(spec *v1alpha1.UncoveredPermissionSetSpec, main runtimeschema.GroupResource) bool {
	if len(spec.Resources) == 0 {
		return true
	}
	for _, name := range endpoint.Class(main.Group, main.Resource) {
		for i := range spec.Resources {
			rule := &spec.Resources[i]
			if !slices.Contains(rule.APIGroups, name.Group) && !slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) {
				continue
			}
			for _, resource := range rule.Resources {
				if r, _, _ := strings.Cut(resource, "/"); r == name.Resource || r == rbacv1.ResourceAll {
					return true
				}
			}
		}
	}
	return false
}

// bodies returns the kinds of all bodies that write objects of a resource, in all versions. The error says why one is not known.
func (b *Barriers) bodies(main runtimeschema.GroupResource) ([]*schema.Kind, error) {
	var out []*schema.Kind
	for _, name := range endpoint.Class(main.Group, main.Resource) {
		for _, gvk := range b.kinds[name] {
			if err := b.fault(gvk); err != nil {
				return nil, err
			}
			k, err := b.compiled.Kind(gvk)
			if err != nil {
				return nil, err
			}
			out = append(out, k)
			for _, e := range endpoint.Writers(name.Group, name.Resource) {
				if e.Body.Kind == "" || e.GroupKind() == gvk.GroupKind() {
					continue
				}
				for _, body := range b.versions(e.GroupKind()) {
					ref := schema.ResourceRef{Group: e.Group, Version: gvk.Version, Resource: e.Resource, Subresource: e.Subresource}
					if k, err := b.compiled.KindFor(body, ref); err != nil {
						return nil, err
					} else if !slices.Contains(out, k) {
						out = append(out, k)
					}
				}
			}
		}
	}
	return out, nil
}

func (b *Barriers) versions(kind runtimeschema.GroupKind) []runtimeschema.GroupVersionKind {
	var out []runtimeschema.GroupVersionKind
	for _, kinds := range b.kinds {
		for _, gvk := range kinds {
			if gvk.GroupKind() == kind && !slices.Contains(out, gvk) {
				out = append(out, gvk)
			}
		}
	}
	return out
}

// chainsOf returns the chains of a kind, and whether these are all.
func chainsOf(k *schema.Kind) (out []chain, complete bool) {
	guards := map[string]*schema.Node{}
	complete = k.Guarded(maxPlaces, func(at fieldpath.Pattern, n *schema.Node) {
		at = slices.Clone(at)
		guards[at.String()] = n
		above := chain{kind: k.GroupVersionKind.GroupKind().String(), root: k.Root, at: at}
		for depth := range at {
			if g := guards[at[:depth].String()]; g != nil {
				above.add(g.Permissions(), depth)
			}
		}
		trees := n.Trees()
		if trees == nil {
			trees = [][]*schema.Permission{n.Permissions()}
		}
		for _, tree := range trees {
			one := above
			one.permissions, one.depths = slices.Clone(above.permissions), slices.Clone(above.depths)
			one.add(tree, len(at))
			out = append(out, one)
		}
	})
	return out, complete
}

func (c *chain) add(permissions []*schema.Permission, depth int) {
	for _, p := range permissions {
		c.permissions, c.depths = append(c.permissions, p), append(c.depths, depth)
	}
}

// passed names the barriers that a verb passes: it is the verb of the barrier, or may be below it in a chain (C2).
func (b *barred) passed(v verbs.Verb) []string {
	if b.whole != "" {
		return []string{b.whole}
	}
	var out []string
	add := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for i := range b.sets {
		if set := &b.sets[i]; sameOrBelow(set.verb, v) {
			add(set.String())
		}
	}
	for i := range b.chains {
		c := &b.chains[i]
		for j, p := range c.permissions {
			if p.Base().WithoutParameter() != v.WithoutParameter() {
				continue
			}
			for k := range j + 1 {
				above := c.permissions[k]
				if above.MayBar() {
					add(fmt.Sprintf("the barrier %s of the schema of %s", above.Base(), c.kind))
				}
				for m := range b.sets {
					if set := &b.sets[m]; above.Base().WithoutParameter() == set.verb.WithoutParameter() && c.below(k, j, set.verb, v) {
						add(set.String())
					}
				}
			}
		}
	}
	return out
}

// String names the barrier.
func (b *barrier) String() string { return fmt.Sprintf("the barrier %s of %s", b.verb, b.source) }

// sameOrBelow reports whether a verb passes a barrier of its own name: it is the same, or has the parameter that the barrier lacks.
func sameOrBelow(barrier, v verbs.Verb) bool { return v == barrier || v.WithoutParameter() == barrier }

// below reports whether a verb that permission j may have can be below a barrier at permission k.
func (c *chain) below(k, j int, barrier, v verbs.Verb) bool {
	if c.depths[k] == c.depths[j] && barrier.WithoutParameter() == v.WithoutParameter() {
		return sameOrBelow(barrier, v)
	}
	at, has := barrier.Parameter()
	value, parameterized := v.Parameter()
	if !has || !parameterized || at == value {
		return true
	}
	// The parameters of one item are equal: granular:image(web) is not below granular:container(api).
	above, own := c.permissions[k], c.permissions[j]
	return !(above.ParameterName() != "" && above.ParameterName() == own.ParameterName() && asEmitted(above) && asEmitted(own) && c.emitters(own.ParameterName()) == 1)
}

// asEmitted reports whether the parameter of a permission is the value that the path emits.
func asEmitted(p *schema.Permission) bool {
	return p.Describe() == p.Base().String()+"("+p.ParameterName()+")"
}

// emitters counts the nodes on the path that emit a parameter.
func (c *chain) emitters(name string) int {
	n, node := 0, c.root
	for i := 0; node != nil; i++ {
		emits := node.Emits() == name
		if list := node.List(); list != nil {
			emits = emits || slices.ContainsFunc(list.Keys(), func(k schema.Key) bool { return k.Emits == name })
		}
		if emits {
			n++
		}
		if i == len(c.at) {
			break
		}
		node = node.Step(c.at[i])
	}
	return n
}
