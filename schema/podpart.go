package schema

import (
	"cmp"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// PodPart is the part of a Pod that a field of another object becomes, for example the specification of a template. The catalogue marks
// such fields, so that barriers on Pods hold there too.
type PodPart string

const (
	// NoPod is a field of which no Pod is made.
	NoPod PodPart = ""
	// PodSpec is the specification of Pods.
	PodSpec PodPart = "spec"
	// PodMetadata is the metadata that Pods get.
	PodMetadata PodPart = "metadata"
)

// podGuards are the guards of the field of Pods that a field becomes.
type podGuards struct {
	// pods are the barriers of the part, from general to specific.
	pods []*guard
	// derived are the barriers of fields of Pods that the API server writes from this one. Each chain is from general to specific.
	derived [][]*guard
	// ofPods are the verbs that the field has in Pods, where a barrier of Pods is in the part.
	ofPods []*guard
	// freed means that the documents about Pods take this key out of the barrier of its prefix.
	freed bool
}

// and returns the guards of both, with the more general first.
func (p podGuards) and(specific podGuards) podGuards {
	return podGuards{
		pods: slices.Concat(p.pods, specific.pods), derived: slices.Concat(p.derived, specific.derived),
		ofPods: slices.Concat(p.ofPods, specific.ofPods), freed: p.freed || specific.freed,
	}
}

// describe adds what is equal for equal guards, but for freed, which the caller adds.
func (p podGuards) describe(c *content) {
	c.guards(p.pods)
	c.guards(p.ofPods)
	c.number(len(p.derived))
	for _, chain := range p.derived {
		c.guards(chain)
	}
}

// podKind is the kind whose barriers hold for templates.
var podKind = runtimeschema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// templateVerbs are the verbs in templates for the verbs of an object's own metadata. A verb of the own metadata never covers the
// metadata of a template.
var templateVerbs = map[string]string{
	"metadata": "templateMetadata", "labels": "templateLabels", "label": "templateLabel", "annotations": "templateAnnotations",
	"annotation": "templateAnnotation", "finalizers": "templateFinalizers", "finalizer": "templateFinalizer",
}

// handedOn are the fields of metadata that controllers copy from a template into a Pod.
var handedOn = []string{"labels", "annotations", "finalizers"}

// podBarriers are the barriers of documents about Pods, as overlays of the parts of a Pod that templates have.
type podBarriers struct {
	parts map[PodPart]*overlay
	// verbs are the verbs of Pods in the parts that have barriers.
	verbs map[PodPart]*overlay
	// sources are all documents of administrators about Pods. A fault in one of them may hide a barrier.
	sources []string
}

// podBarriers reads the barriers of administrators on fields of Pods.
func (c *compiler) podBarriers() *podBarriers {
	if c.onPods != nil {
		return c.onPods
	}
	c.onPods = &podBarriers{parts: map[PodPart]*overlay{}, verbs: map[PodPart]*overlay{}}
	// said are the entries of administrators about Pods, all those of everyone that Pods have.
	said, all := &overlay{}, &overlay{}
	for i := range c.docs.Permissions {
		d := &c.docs.Permissions[i]
		// As on Pods, a barrier holds whatever version the document names.
		isSaid := d.Kind != "*" && d.Rank == RankAdministrator && d.matchesKind(podKind)
		if isSaid {
			said.lay(c.read(i))
			c.onPods.sources = append(c.onPods.sources, d.Source)
		}
		if isSaid || d.matches(podKind) {
			all.lay(c.read(i))
		}
	}
	for _, part := range []PodPart{PodSpec, PodMetadata} {
		c.onPods.parts[part] = said.field(string(part)).onPods(fieldpath.Pattern{{Name: string(part)}})
	}
	derived, err := all.onDerived()
	if err != nil {
		c.report(err) // A fault of a document about Pods, so that no kind that Pods are made from is in force.
	}
	for part, barriers := range c.onPods.parts {
		if c.onPods.parts[part] = barriers.bearing(derived.field(string(part))); barriers != nil {
			c.onPods.verbs[part] = all.field(string(part)).verbsOfPods(part)
		}
	}
	return c.onPods
}

// on returns an overlay of a part of Pods with the barriers of the part, and with its verbs, which pass them.
func (p *podBarriers) on(o *overlay) *overlay {
	return o.bearing(p.parts[o.pod]).knowing(p.verbs[o.pod])
}

// knowing returns the overlay with the verbs that its fields have in Pods.
func (o *overlay) knowing(verbs *overlay) *overlay {
	if o == nil || verbs == nil {
		return o
	}
	out := *o
	out.key, out.ofPods, out.any = "", verbs.ofPods, o.any.knowing(verbs.any)
	if len(o.fields) > 0 {
		out.fields = make(map[string]*overlay, len(o.fields))
		for name, below := range o.fields {
			out.fields[name] = below.knowing(verbs.fields[name])
		}
	}
	return &out
}

// verbsOfPods returns the verbs of an overlay of Pods as those of a part.
func (o *overlay) verbsOfPods(part PodPart) *overlay {
	if o == nil {
		return nil
	}
	out := &overlay{any: o.any.verbsOfPods(part), fields: map[string]*overlay{}}
	if o.guard != nil && o.guard.entry.Verb != "" {
		out.ofPods = []*guard{o.guard.onPods(part)}
	}
	for name, below := range o.fields {
		out.fields[name] = below.verbsOfPods(part)
	}
	return out
}

// isOfPods reports whether the guard has a verb that the field has in Pods too.
func (o *overlay) isOfPods(g *guard) bool {
	return g != nil && slices.ContainsFunc(o.ofPods, func(pods *guard) bool {
		return pods.sameVerb(g) || pods.entry.Verb == g.entry.Verb && g.entry.ParameterizedBy == ""
	})
}

// onPods returns the barriers of an overlay at a path of Pods as barriers of the fields that become the part, nil for none.
func (o *overlay) onPods(at fieldpath.Pattern) *overlay {
	if o == nil {
		return nil
	}
	out := &overlay{any: o.any.onPods(at.Child(fieldpath.Element{Any: true})), fields: map[string]*overlay{}}
	if o.guard != nil && o.guard.bars() {
		barrier := o.guard.onPods(PodPart(at[0].Name))
		if barrier.entry.ExcludedWhen != "" && isDerived(at) {
			barrier = barrier.always() // A template does not show the value that a Pod gets.
		}
		out.pods = []*guard{barrier}
	}
	for name, below := range o.fields {
		next := below.onPods(at.Child(fieldpath.Element{Name: name}))
		if o.frees(name) {
			next = cmp.Or(next, &overlay{})
			next.freed = true
		}
		if next != nil {
			out.fields[name] = next
		}
	}
	if out.any == nil && len(out.pods)+len(out.fields) == 0 {
		return nil
	}
	return out
}

// onPods returns a barrier of a field of Pods as the barrier of a field that becomes a part of Pods. Each change of a template makes new Pods,
// so a condition that reads the old value counts also for a Pod that had none.
func (g *guard) onPods(part PodPart) *guard {
	out := g.lend("")
	if verb := templateVerbs[g.entry.Verb]; part == PodMetadata && verb != "" {
		out = out.change(func(g *guard) { g.entry.Verb = verb })
	}
	return out.change(func(g *guard) { g.makes = true })
}

// bearing returns the overlay with the barriers of a part of Pods. It does not change o.
func (o *overlay) bearing(barriers *overlay) *overlay {
	if barriers == nil {
		return o
	}
	out := &overlay{}
	if o != nil {
		*out = *o
		out.key = ""
	}
	out.podMark, out.podGuards = out.podMark.and(barriers.podMark), out.podGuards.and(barriers.podGuards)
	if barriers.any != nil {
		out.any = out.any.bearing(barriers.any)
	}
	if len(barriers.fields) > 0 {
		fields := make(map[string]*overlay, len(out.fields)+len(barriers.fields))
		for name, below := range out.fields {
			fields[name] = below
		}
		for name, below := range barriers.fields {
			fields[name] = fields[name].bearing(below)
		}
		out.fields = fields
	}
	return out
}

// fork adds barriers of Pods, from general to specific. They have a tree of their own, in which they stand below the verbs of the node, so
// that a change needs them as well as the barriers of the node, and no verb of the template passes them. If the last of them has a verb
// that the node has, it is a barrier there too: a verb that stands apart below it stays the only one that passes. passing are the permissions of
// the node that pass a barrier of Pods above.
func (n *Node) fork(onPods, passing []*Permission) {
	own, tree := n.permissions, joined(passing, onPods)
	if len(onPods) > 0 {
		own, _ = barred(own, onPods[len(onPods)-1])
		n.permissions = joined(n.permissions, onPods)
	}
	if !slices.Equal(own, tree) {
		n.trees, n.forks = [][]*Permission{own, tree}, true
	}
}

// derive adds the barriers of fields of Pods that the API server writes from the field of the node, and the verbs that pass them in Pods, each chain
// from general to specific. A change of the node needs the last barrier of each, or what passes it, besides what it needs without. If the node has its
// verb, that is a barrier too, as in fork.
func (n *Node) derive(chains [][]*Permission) {
	if len(chains) == 0 {
		return
	}
	if n.trees == nil {
		n.trees = [][]*Permission{n.permissions}
	}
	var all []*Permission
	for _, chain := range chains {
		barriers := slices.DeleteFunc(slices.Clone(chain), func(p *Permission) bool { return !p.MayBar() })
		if len(barriers) > 0 {
			n.trees[0], _ = barred(n.trees[0], barriers[len(barriers)-1])
		}
		all = append(all, barriers...)
	}
	// What passes the barriers does so in this chain only. Verbs of the template, also those below the node, do not.
	n.derived, n.permissions = append(n.derived, chains...), joined(n.permissions, once(all))
}

// once returns the permissions without those that a later one includes.
func once(all []*Permission) []*Permission {
	type named struct {
		verb      verbs.Verb
		parameter string
	}
	known := make(map[named][]*Permission, len(all))
	var out []*Permission
	for _, p := range slices.Backward(all) {
		if of := (named{p.verb, p.parameter}); !says(known[of], p) {
			known[of], out = append(known[of], p), append(out, p)
		}
	}
	slices.Reverse(out)
	return out
}

// barred returns the permissions with a barrier at the verb that they share with it, and whether they share it.
func barred(own []*Permission, barrier *Permission) ([]*Permission, bool) {
	i := slices.IndexFunc(own, func(p *Permission) bool { return sameVerb(p, barrier) && !p.excluded })
	if i < 0 {
		return own, says(own, barrier)
	}
	own = slices.Insert(slices.Clone(own), i+1, barrier)
	if p := own[i]; !p.MayBar() && p.treatment == barrier.treatment && p.expressionText == barrier.expressionText {
		own = slices.Delete(own, i, i+1)
	}
	return own, true
}

// joined returns the permissions that more does not include, and more.
func joined(own, more []*Permission) []*Permission {
	return slices.Concat(slices.DeleteFunc(slices.Clone(own), func(p *Permission) bool { return says(more, p) }), more)
}
