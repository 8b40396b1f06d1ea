package audit

import (
	"cmp"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Known is what a permission schema says about verbs on resources. It is made from a traced compile. It is not safe for concurrent use: it
// builds the trees of the resources that it is asked about.
type Known struct {
	compiled *schema.Schema
	// kinds are the kinds of each resource in the versions that are served.
	kinds map[runtimeschema.GroupResource][]runtimeschema.GroupVersionKind
	// groups are the API groups with a kind, failed those with a kind that did not compile.
	groups, failed map[string]bool
	// insides are the kinds whose status is written with the object. scales are the kinds of definitions with a subresource scale.
	insides, scales map[runtimeschema.GroupVersionKind]bool
	defined         map[runtimeschema.GroupVersionKind]bool
	written         map[Resource]*written
	names           map[string][]Resource
	barriers        []Barrier
}

// written are the verbs of the fields that are written through a resource or a subresource, by name: image for granular:image(web).
type written struct{ verbs map[string]*use }

// use is a verb on a resource.
type use struct {
	// bare, prefix, exact and computed say which parameters its permissions take: none, the part before a slash, the value, or the result of
	// an expression.
	bare, prefix, exact, computed bool
	powers                        []schema.Power
	// barred means that it is at or below a barrier, so that the generic permission does not replace it. within are the names of the
	// barriers at or above it.
	barred bool
	within map[string]bool
	// outsideStatus means that it is on a field outside of the status. precise means that it is on a field that the body of a subresource
	// consists of, such as the replicas of a scale.
	outsideStatus, precise bool
}

// NewKnown returns what a schema says. The documents are those that it was compiled from.
func NewKnown(compiled *schema.Schema, documents *compile.Documents) *Known {
	k := &Known{
		compiled: compiled, kinds: map[runtimeschema.GroupResource][]runtimeschema.GroupVersionKind{}, groups: map[string]bool{}, failed: map[string]bool{},
		insides: map[runtimeschema.GroupVersionKind]bool{}, scales: map[runtimeschema.GroupVersionKind]bool{}, defined: map[runtimeschema.GroupVersionKind]bool{},
		written: map[Resource]*written{},
	}
	for i := range documents.Topologies {
		t := &documents.Topologies[i]
		for gvk, inside := range t.StatusInside {
			k.defined[gvk], k.insides[gvk] = true, inside
			_, k.scales[gvk] = t.Replicas[gvk]
		}
	}
	for _, kind := range compiled.Kinds() {
		if t := kind.Trace(); t != nil && t.Served && !kind.IsScale() {
			k.kinds[t.Resource] = append(k.kinds[t.Resource], kind.GroupVersionKind)
			k.groups[t.Resource.Group] = true
		}
	}
	for r := range k.kinds {
		slices.SortFunc(k.kinds[r], func(a, b runtimeschema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	}
	for gvk := range compiled.Failed() {
		k.groups[gvk.Group], k.failed[gvk.Group] = true, true
	}
	k.readBarriers(documents)
	slices.SortStableFunc(k.barriers, func(a, b Barrier) int {
		return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Verb.String(), b.Verb.String()))
	})
	return k
}

// has reports whether a resource without a subresource is known.
func (k *Known) has(group, resource string) bool {
	r := runtimeschema.GroupResource{Group: group, Resource: resource}
	return len(k.kinds[r]) > 0 || endpoint.BuiltIn(group, resource)
}

// serves reports whether a resource has a subresource that is known. "" is the resource itself.
func (k *Known) serves(group, resource, subresource string) bool {
	if !k.has(group, resource) {
		return false
	}
	if subresource == "" {
		return true
	}
	if endpoint.BuiltIn(group, resource) {
		_, ok := endpoint.Lookup(group, resource, subresource)
		return ok
	}
	return slices.ContainsFunc(k.kinds[runtimeschema.GroupResource{Group: group, Resource: resource}], func(gvk runtimeschema.GroupVersionKind) bool {
		switch {
		case !k.defined[gvk]:
			return true // Of a resource of another API server it is not known.
		case subresource == "scale":
			return k.scales[gvk]
		}
		return subresource == "status" && !k.insides[gvk]
	})
}

// of returns the verbs that are written through a resource, nil if the resource is not known. The resource has no wildcard.
func (k *Known) of(r Resource) *written {
	if out, seen := k.written[r]; seen {
		return out
	}
	var out *written
	if resource, subresource := r.split(); k.serves(r.Group, resource, subresource) {
		out = &written{verbs: map[string]*use{}}
		for _, gvk := range k.kinds[runtimeschema.GroupResource{Group: r.Group, Resource: resource}] {
			k.read(out, gvk, schema.ResourceRef{Group: r.Group, Version: gvk.Version, Resource: resource, Subresource: subresource})
		}
		if len(out.verbs) == 0 && subresource == "" {
			k.readBody(out, r.Group, resource)
		}
		if subresource == "" {
			out.verbs[verbs.Creation().Name()] = &use{bare: true, outsideStatus: true}
		}
	}
	k.written[r] = out
	return out
}

// readBody reads a resource without a kind of its own, such as bindings.
func (k *Known) readBody(out *written, group, resource string) {
	e, ok := endpoint.Lookup(group, resource, "")
	if !ok {
		return
	}
	for _, body := range k.bodies(e.GroupKind()) {
		k.walk(out, body, schema.ResourceRef{Group: group, Version: body.Version, Resource: resource}, &e)
	}
}

func (k *Known) bodies(of runtimeschema.GroupKind) []runtimeschema.GroupVersionKind {
	var out []runtimeschema.GroupVersionKind
	for _, kind := range k.compiled.Kinds() {
		if kind.GroupKind() == of {
			out = append(out, kind.GroupVersionKind)
		}
	}
	return out
}

// read adds the verbs of one version.
func (k *Known) read(out *written, gvk runtimeschema.GroupVersionKind, ref schema.ResourceRef) {
	e, ok := endpoint.Lookup(ref.Group, ref.Resource, ref.Subresource)
	if ref.Subresource == "" || !ok || e.Body.Kind == "" || e.Body.Kind == "*" || e.GroupKind() == gvk.GroupKind() {
		k.walk(out, gvk, ref, &e)
		return
	}
	for _, body := range k.bodies(e.GroupKind()) {
		k.walk(out, body, ref, &e)
	}
}

// walk adds the verbs of a body that is written through an endpoint.
func (k *Known) walk(out *written, body runtimeschema.GroupVersionKind, ref schema.ResourceRef, e *endpoint.Endpoint) {
	tree, err := fieldtree.Of(k.compiled, body, ref)
	if err != nil {
		return // A kind that did not compile is in failed.
	}
	w := &walker{out: out, tree: tree, seen: map[visit]bool{}}
	if ref.Subresource != "" && !e.Whole {
		w.limited, w.fields = true, sent(e)
	}
	w.node(tree.Root, nil, "", nil)
}

// sent are the fields of a body that an endpoint takes.
func sent(e *endpoint.Endpoint) []fieldpath.Pattern {
	var out []fieldpath.Pattern
	add := func(path string) {
		if p, err := fieldpath.ParsePattern(path); err == nil {
			out = append(out, p)
		}
	}
	for _, f := range e.Fields {
		add(f.From)
	}
	for _, refused := range e.Refused {
		add(refused)
	}
	return out
}

// walker collects the verbs of a tree.
type walker struct {
	out     *written
	tree    *fieldtree.Kind
	limited bool
	fields  []fieldpath.Pattern
	seen    map[visit]bool
}

// visit is a node with what is above it.
type visit struct {
	node   *fieldtree.Node
	top    string
	within string
	inside bool
}

func (w *walker) node(n *fieldtree.Node, path fieldpath.Pattern, top string, within []string) {
	inside, precise := !w.limited, false
	if w.limited {
		if !slices.ContainsFunc(w.fields, path.Meets) {
			return
		}
		inside = slices.ContainsFunc(w.fields, func(f fieldpath.Pattern) bool { return len(f) <= len(path) })
		precise = slices.ContainsFunc(w.fields, func(f fieldpath.Pattern) bool { return len(f) == len(path) })
	}
	at := visit{n, top, strings.Join(within, " "), inside}
	if inside && w.seen[at] {
		return // Below it is the same as before.
	}
	w.seen[at] = true
	all := slices.Clone(n.Verbs)
	for _, tree := range append(slices.Clip(n.Trees), n.Beside) {
		all = append(all, tree...)
	}
	for _, v := range all {
		if name := v.Base.Name(); w.bars(v, path) && !slices.Contains(within, name) {
			within = append(slices.Clone(within), name)
		}
	}
	for _, v := range all {
		w.add(v, top, precise, within)
	}
	for _, c := range n.Children {
		below := top
		if below == "" {
			below = c.Name
		}
		w.node(c.Node, path.Child(c.Element), below, within)
	}
}

// bars reports whether a verb is a barrier for some value, by its schema or by a set that refuses writes.
func (w *walker) bars(v *fieldtree.Verb, path fieldpath.Pattern) bool {
	return v.Bars() || slices.ContainsFunc(w.tree.Sets, func(b *fieldtree.SetBarrier) bool {
		return b.Denies() && b.On(v) && (!b.StatusOnly || len(path) > 0 && path[0].Name == "status")
	})
}

func (w *walker) add(v *fieldtree.Verb, top string, precise bool, within []string) {
	u := w.out.verbs[v.Base.Name()]
	if u == nil {
		u = &use{within: map[string]bool{}}
		w.out.verbs[v.Base.Name()] = u
	}
	switch {
	case v.Parameter == "":
		u.bare = true
	case v.Expression != "":
		u.computed = true
	case v.TakesPrefix:
		u.prefix = true
	default:
		u.exact = true
	}
	for _, p := range v.Powers {
		if !slices.Contains(u.powers, p) {
			u.powers = append(u.powers, p)
		}
	}
	u.precise = u.precise || precise
	u.outsideStatus = u.outsideStatus || top != "status"
	u.barred = u.barred || len(within) > 0
	for _, name := range within {
		u.within[name] = true
	}
}

// effective reports whether a write of the resource can change a field with the verb. kube-apiserver ignores the status in a write of an
// object with a subresource status.
func (k *Known) effective(r Resource, u *use) bool {
	resource, subresource := r.split()
	if subresource != "" || u.outsideStatus {
		return true
	}
	return !k.serves(r.Group, resource, "status") || endpoint.StatusOnCreate(r.Group, resource) || k.statusInside(r.Group, resource)
}

// statusInside reports whether a write of a custom resource may store the status: through a version without the subresource, or a lossy one.
func (k *Known) statusInside(group, resource string) bool {
	return slices.ContainsFunc(k.kinds[runtimeschema.GroupResource{Group: group, Resource: resource}], func(gvk runtimeschema.GroupVersionKind) bool {
		kind, err := k.compiled.Kind(gvk)
		return k.insides[gvk] || err == nil && kind.Lossy() && !endpoint.BuiltIn(group, resource)
	})
}

// takes reports whether a verb with this parameter can be the verb of a field. If not, it returns the verb to write.
func (u *use) takes(v verbs.Verb) (instead string, ok bool) {
	value, has := v.Parameter()
	if !has || u.exact || u.computed {
		return "", true
	}
	if !u.prefix {
		return v.WithoutParameter().String(), false
	}
	prefix, _, slashed := strings.Cut(value, "/")
	if !slashed {
		return "", true
	}
	if one, valid := v.WithoutParameter().WithParameter(prefix); valid {
		return one.String(), false
	}
	return v.WithoutParameter().String(), false
}
