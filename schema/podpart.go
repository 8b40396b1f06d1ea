package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
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
	parts   map[PodPart]*overlay
	sources []string
}

// podBarriers reads the barriers of administrators on fields of Pods.
func (c *compiler) podBarriers() *podBarriers {
	if c.onPods != nil {
		return c.onPods
	}
	c.onPods = &podBarriers{parts: map[PodPart]*overlay{}}
	for i := range c.docs.Permissions {
		d := &c.docs.Permissions[i]
		if d.Kind != podKind.Kind || d.Rank != RankAdministrator || !d.matches(podKind) {
			continue
		}
		for _, s := range c.read(i) {
			if c.onPods.add(s) && !slices.Contains(c.onPods.sources, d.Source) {
				c.onPods.sources = append(c.onPods.sources, d.Source)
			}
		}
	}
	return c.onPods
}

// add adds an entry if it is a barrier in a part of the Pod that templates have.
func (b *podBarriers) add(s statement) bool {
	if len(s.path) == 0 || s.path[0].Any || !s.guard.bars() {
		return false
	}
	part, lent := PodPart(s.path[0].Name), s.guard.lend("")
	if part != PodSpec && part != PodMetadata {
		return false
	}
	if verb := templateVerbs[s.guard.entry.Verb]; part == PodMetadata && verb != "" {
		lent = lent.with(func(g *guard) { g.entry.Verb = verb })
	}
	at := b.parts[part]
	if at == nil {
		at = &overlay{}
		b.parts[part] = at
	}
	for _, step := range s.path[1:] {
		at = at.grow(step)
	}
	at.pods = append(at.pods, lent)
	return true
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
	for _, theirs := range barriers.pods {
		if out.guard != nil && out.guard.sameVerb(theirs) {
			out.guard = out.guard.strengthen(theirs)
			continue
		}
		out.pods = append(slices.Clone(out.pods), theirs)
	}
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
