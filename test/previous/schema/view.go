package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/test/previous/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// view describes how much a request shows of the object that a set guards. The zero view shows nothing.
type view struct {
	reads reads
	// kinds are the versions in which the object is shown.
	kinds []*Kind
	// unseen means that the request changes a stored object that it does not show: there is no oldObject although the object exists.
	unseen bool
}

// shows reports whether the request shows everything that a condition reads.
func (v view) shows(x *expression) bool {
	return x.reads <= v.reads && !(v.unseen && x.readsOld) && !slices.ContainsFunc(v.kinds, func(k *Kind) bool { return slices.ContainsFunc(x.fields, k.isUnlike) })
}

// shown returns the view that requests of a shape give of the object of a set.
func (s *Schema) shown(u *uncoveredSet, shape shapeOfRequest) view {
	if u.reads() == readsRequest || !u.showsObject(shape.ref, shape.kind.GroupKind()) {
		return view{}
	}
	out := view{reads: readsObject, unseen: changesUnseen(shape.ref)}
	for _, gvk := range []runtimeschema.GroupVersionKind{shape.kind, shape.sentAs} {
		k, err := s.KindFor(gvk, shape.ref)
		if err != nil {
			return view{}
		}
		out.reads, out.kinds = min(out.reads, k.shows()), append(out.kinds, k)
	}
	return out
}

// changesUnseen reports whether requests to an endpoint change a stored object that they do not show.
func changesUnseen(ref ResourceRef) bool {
	e, ok := endpoint.Lookup(ref.Group, ref.Resource, ref.Subresource)
	return ok && e.ChangesUnseen()
}

// shows returns how much a version shows of an object. A lossy version may lack fields that a condition reads.
func (k *Kind) shows() reads {
	if k.hidden == nil {
		return readsObject
	}
	return k.hidden.shows
}

// isShownIn reports whether a version shows the fields that the conditions of the set read.
func (u *uncoveredSet) isShownIn(k *Kind) bool {
	v := view{reads: k.shows(), kinds: []*Kind{k}}
	return !slices.ContainsFunc(u.conditions, func(c condition) bool { return !v.shows(c.expression) })
}

// isUnlike reports whether a field of a match condition is different in another version.
func (k *Kind) isUnlike(field fieldpath.Pattern) bool { return k.unlike[field.String()] }

// compareFields finds the fields of match conditions that differ between versions. A condition on the field of one version cannot be
// evaluated on an object of another version. This is the case for a version without the field, and for all versions with the field if its
// types differ.
func (c *compiler) compareFields(s *Schema) {
	fields := map[string]fieldpath.Pattern{}
	for i := range s.uncovered {
		for _, condition := range s.uncovered[i].conditions {
			for _, field := range condition.fields {
				fields[field.String()] = field
			}
		}
	}
	if len(fields) == 0 {
		return
	}
	unlike := map[runtimeschema.GroupVersionKind]map[string]bool{}
	for gvk := range c.owner {
		for text, field := range fields {
			if c.isUnlike(gvk, field) {
				if unlike[gvk] == nil {
					unlike[gvk] = map[string]bool{}
				}
				unlike[gvk][text] = true
			}
		}
	}
	for gvk, k := range s.kinds {
		k.unlike = unlike[gvk]
	}
	for at, k := range s.bodies {
		k.unlike = unlike[at.body]
	}
	for _, k := range s.concealing {
		k.unlike = unlike[k.GroupVersionKind]
	}
}

func (c *compiler) isUnlike(gvk runtimeschema.GroupVersionKind, field fieldpath.Pattern) bool {
	own := shapeOf(gvk, c.owner).at(field)
	return slices.ContainsFunc(c.versions[gvk.GroupKind()], func(other runtimeschema.GroupVersionKind) bool {
		if other == gvk || c.keepsNames(gvk, other) || !c.isServed(other) {
			return false
		}
		theirs := shapeOf(other, c.owner).at(field)
		return theirs.exists() && !own.same(theirs)
	})
}

// isServed reports whether clients may send objects in a version. All versions are served that an API server publishes or a definition
// has. Of the versions that are only compiled in, those are served that were recorded.
func (c *compiler) isServed(gvk runtimeschema.GroupVersionKind) bool {
	if !c.owner[gvk].RoundTrips {
		return true
	}
	resource := c.owner[gvk].resource(gvk)
	own, _ := endpoint.Lookup(resource.Group, resource.Resource, "")
	return own.Body.Kind == "" || own.GroupKind() != gvk.GroupKind() || slices.Contains(own.Versions, gvk.Version)
}
