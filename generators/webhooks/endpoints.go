package webhooks

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// SetEndpoints returns the endpoints of known resources that write a field which an UncoveredPermissionSet guards, one by one and under
// all names of a resource. It leaves out the floor.
func SetEndpoints(s *schema.Schema, d *sets.Document, plurals map[runtimeschema.GroupKind]string) []endpoint.Endpoint {
	resources := s.SetResources(&d.Set.Spec)
	if len(resources) == 0 {
		resources = []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}
	}
	p := probes{schema: s, barrier: d.Barrier(), seen: map[endpoint.Ref]bool{}}
	p.addSet(resources, newWriters(s, d.Set.Spec.UncoveredPermissions, plurals))
	return p.sorted()
}

// addSet adds the endpoints of resources that write a field with one of the verbs.
func (p *probes) addSet(resources []v1alpha1.ResourceRule, w *writers) {
	for _, rule := range resources {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				resource, subresource, single := strings.Cut(name, "/")
				for at := range w.resources(group, resource) {
					for _, e := range endpoint.Writers(at.Group, at.Resource) {
						if single && (e.GroupResource() != at || subresource != "*" && e.Subresource != subresource) {
							continue
						}
						if w.every || w.writes(at, &e) {
							p.add(e, w.kinds)
						}
					}
				}
			}
		}
	}
}

// KindEndpoints returns the endpoints that write a field behind a barrier in the schemas of a kind.
func KindEndpoints(s *schema.Schema, kind runtimeschema.GroupKind, plurals map[runtimeschema.GroupKind]string) []endpoint.Endpoint {
	w := newWriters(s, nil, plurals)
	p := probes{schema: s, barrier: schema.Excluded, seen: map[endpoint.Ref]bool{}}
	for _, rule := range UncoveredKind(s, kind, plurals) {
		for _, name := range rule.Resources {
			resource, subresource, _ := strings.Cut(name, "/")
			// An endpoint with a body of another kind may belong to any resource; then no single name exists.
			if e, ok := endpoint.Lookup(rule.APIGroups[0], resource, subresource); ok && resource != "*" {
				p.add(e, w.kinds)
			}
		}
	}
	return p.sorted()
}

// RuleEndpoints returns the endpoints of known resources that rules match, for each kind of operations. Of a rule for every resource it
// returns one: an API server has all of a rule or nothing. It leaves out the floor, and endpoints that store nothing, which take no probe.
func RuleEndpoints(s *schema.Schema, rules []Rule, plurals map[runtimeschema.GroupKind]string) map[Operations][]endpoint.Endpoint {
	w := newWriters(s, nil, plurals)
	out := map[Operations][]endpoint.Endpoint{}
	for _, rule := range rules {
		for _, name := range rule.Resources {
			group := rule.APIGroups[0]
			resource, subresource, _ := strings.Cut(name, "/")
			if subresource == "*" {
				subresource = ""
			}
			if (group == "*" || group == "") && resource == "*" && subresource == "" {
				group, resource = "", "configmaps" // One exists in every cluster.
			}
			for at := range w.resources(group, resource) {
				if e, known := endpoint.Lookup(at.Group, at.Resource, subresource); known && at.Group != "*" && at.Resource != "*" && probed(rule.Operations, &e) {
					out[rule.Operations] = append(out[rule.Operations], e)
				}
			}
		}
	}
	for _, list := range out {
		endpoint.Sort(list)
	}
	return out
}

// probed reports whether a probe of operations can be sent to an endpoint.
func probed(operations Operations, e *endpoint.Endpoint) bool {
	if admission.FloorResource(e.Group, e.Resource) || admission.FloorResource(e.Group, e.Name()) {
		return false
	}
	switch operations {
	case Writes:
		// The creation of a subresource, such as an eviction, is no probe: it would change its object.
		return e.Storage != "" && (e.Updates() || e.Creates() && e.Subresource == "" || endpoint.IsBinding(e.Group, e.Resource, e.Subresource))
	case Deletions:
		return e.Whole && e.Subresource == ""
	case Connects:
		return endpoint.IsConnection(e.Group, e.Resource, e.Subresource)
	}
	return false
}

// probes collects the endpoints at which a barrier is known.
type probes struct {
	schema  *schema.Schema
	barrier string
	seen    map[endpoint.Ref]bool
	out     []endpoint.Endpoint
}

func (p *probes) add(e endpoint.Endpoint, kinds map[runtimeschema.GroupResource][]*schema.Kind) {
	at := endpoint.Ref{Group: e.Group, Resource: e.Resource, Subresource: e.Subresource}
	if p.seen[at] || e.Storage == "" || admission.FloorResource(e.Group, e.Resource) || admission.FloorResource(e.Group, e.Name()) {
		return
	}
	bodies := kinds[e.GroupResource()]
	if isForeign(&e) {
		bodies = nil
		for _, k := range p.schema.Kinds() {
			if k.GroupKind() == e.GroupKind() {
				bodies = append(bodies, k)
			}
		}
	}
	ref := schema.ResourceRef{Group: e.Group, Resource: e.Resource, Subresource: e.Subresource}
	p.seen[at] = true
	for _, body := range bodies {
		k, err := p.schema.KindFor(body.GroupVersionKind, ref)
		if err == nil && slices.Contains(p.schema.Barriers(k, ref), p.barrier) {
			p.out = append(p.out, e)
			return
		}
	}
}

func (p *probes) sorted() []endpoint.Endpoint {
	endpoint.Sort(p.out)
	return p.out
}
