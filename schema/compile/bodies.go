package compile

import (
	"maps"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// deriveBodies makes the trees of bodies that write a part of an object of another kind: a Scale, a Binding, an Event of the other group.
// If a field of the body becomes a field of the object, it has the verbs and barriers of both.
func (c *compiler) deriveBodies() {
	for gvk, k := range c.kinds {
		if schema.IsScale(gvk.GroupKind()) {
			k = k.With(func(p *schema.KindParts) {
				p.Root = changedAt(p.Root, []string{"spec", "replicas"}, func(n *schema.Node) *schema.Node {
					return withPermissions(n, withZero(n.Permissions(), schema.AbsentMayBeZero))
				})
			})
			c.kinds[gvk] = k
			if versions := k.Parts().Versions; versions != nil {
				versions[gvk.GroupVersion().String()] = k
			}
		}
	}
	grafts := map[schema.Body]*graft{}
	for _, gvk := range inOrder(c.owner) {
		resource := c.owner[gvk].resource(gvk)
		own, isBuiltIn := endpoint.Lookup(resource.Group, resource.Resource, "")
		if isBuiltIn && !own.Whole {
			continue // A Binding is no object: it writes a part of one.
		}
		for _, e := range endpoint.Writers(resource.Group, resource.Resource) {
			if e.Body.Kind == "" || e.GroupKind() == gvk.GroupKind() {
				continue
			}
			for _, body := range c.versions[e.GroupKind()] {
				if c.kinds[body] == nil {
					continue // It did not compile.
				}
				at := schema.Body{Group: e.Group, Resource: e.Resource, Subresource: e.Subresource, Kind: body}
				if err := c.failed[gvk]; err != nil {
					c.failedBodies[at] = err
					continue
				}
				places := []schema.Body{at}
				if at.Subresource == schema.ScaleSubresource {
					at.Version = gvk.Version
					places = append(places, at)
				}
				for _, at := range places {
					if grafts[at] == nil {
						grafts[at] = &graft{body: c.kinds[body].Root, unseen: e.ChangesUnseen(), zero: zeroIn(at)}
					}
					for _, f := range becomes(&e, &own, c.kinds[body].Root, c.owner[gvk].replicas(gvk)) {
						grafts[at].add(f, c.kinds[gvk].Root)
					}
				}
			}
		}
	}
	for at, g := range grafts {
		k, root := c.kinds[at.Kind], g.root()
		if root != nil {
			k = k.With(func(p *schema.KindParts) { p.Root = root })
		}
		if root != nil || at.Version != "" {
			c.bodies[at] = k
		}
	}
	// The API server may ask a webhook about one name although the client addressed another.
	for at, k := range c.bodies {
		for _, other := range aliases(at) {
			if c.bodies[other] == nil {
				c.bodies[other] = k
			}
		}
	}
	for at, err := range c.failedBodies {
		for _, other := range aliases(at) {
			c.failedBodies[other] = err
		}
	}
}

// aliases returns the other names of a body's endpoint.
func aliases(at schema.Body) []schema.Body {
	var out []schema.Body
	for _, alias := range endpoint.Aliases(at.Group, at.Resource, at.Subresource) {
		out = append(out, schema.Body{Group: alias.Group, Resource: alias.Resource, Subresource: alias.Subresource, Kind: at.Kind, Version: at.Version})
	}
	return out
}

// becomes returns which fields of an endpoint's body become which fields of the object, in the names of the object's own endpoint.
func becomes(e, own *endpoint.Endpoint, body *schema.Node, replicas string) []endpoint.Field {
	var out []endpoint.Field
	if !e.Whole {
		for _, f := range e.Fields {
			if f.To == endpoint.SpecReplicas {
				f.To = replicas
			}
			out = append(out, endpoint.Field{From: f.From, To: f.Stored()})
		}
		return out
	}
	if body.Map() == nil {
		return nil
	}
	// The object has two names. The fields of both bodies are matched by their names in storage.
	for _, name := range sortedKeys(body.Map().Parts().Fields) {
		from := "." + name
		if name == "apiVersion" || name == "kind" {
			continue
		}
		out = append(out, endpoint.Field{From: from, To: unstored(own, stored(e, from))})
	}
	return out
}

// stored returns the name in storage of a field of an endpoint's body.
func stored(e *endpoint.Endpoint, path string) string {
	for _, f := range e.Fields {
		if f.From == path {
			return f.Stored()
		}
	}
	return path
}

// unstored returns the name in an endpoint's body of a field in storage.
func unstored(e *endpoint.Endpoint, path string) string {
	for _, f := range e.Fields {
		if f.Stored() == path {
			return f.From
		}
	}
	return path
}

// zeroIn returns the meaning of absent replicas. Objects of built-in kinds always have replicas.
func zeroIn(at schema.Body) schema.Zero {
	switch {
	case !schema.IsScale(at.Kind.GroupKind()):
		return schema.NothingIsZero
	case endpoint.BuiltIn(at.Group, at.Resource):
		return schema.AbsentIsZero
	}
	return schema.AbsentMayBeZero
}

const unknownReplicas = "the OpenAPI document of the server does not say which field the subresource scale writes: write that field of the object instead, or give it the verb \"scale\" there"

// hideReplicas makes the Scales of resources for which it is not known which field they write.
func (c *compiler) hideReplicas() {
	for gvk, k := range c.kinds {
		if !c.owner[gvk].ReplicasUnknown[gvk] {
			continue
		}
		resource := c.owner[gvk].resource(gvk)
		c.replicasUnknown[resource] = true
		if scale := c.kinds[schema.ScaleKind()]; scale != nil && !k.Lossy() {
			h := &schema.Hidden{Instead: unknownReplicas, Verbs: map[string]bool{}}
			h.Add(k)
			if own := k.Parts().Hidden; own != nil {
				for _, barrier := range own.Barriers {
					h.Bar(barrier)
				}
				maps.Copy(h.Verbs, own.Verbs)
			}
			c.scales[resource.WithVersion(gvk.Version)] = scale.With(func(p *schema.KindParts) { p.Hidden = h })
		}
	}
}

// deriveScales makes the Scales of resources whose kind has hidden fields.
func (c *compiler) deriveScales() {
	for gvk, k := range c.kinds {
		resource := c.owner[gvk].resource(gvk)
		scale := c.bodies[schema.Body{Group: resource.Group, Resource: resource.Resource, Subresource: schema.ScaleSubresource, Kind: schema.ScaleKind(), Version: gvk.Version}]
		if scale == nil {
			scale = c.kinds[schema.ScaleKind()]
		}
		if h := k.Parts().Hidden; h != nil && scale != nil {
			c.scales[resource.WithVersion(gvk.Version)] = scale.With(func(p *schema.KindParts) { p.Hidden = h })
		}
	}
}
