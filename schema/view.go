package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// view is what a request shows of the object that a set is about. The zero view shows nothing.
type view struct {
	reads reads
	// kinds are the versions in which the object is shown.
	kinds []*Kind
	// unseen is that the request changes a stored object that it does not show: it has no oldObject, though there is one.
	unseen bool
}

// shows reports whether a condition finds what it reads.
func (v view) shows(c *condition) bool {
	return c.reads <= v.reads && !(v.unseen && c.readsOld) && !slices.ContainsFunc(v.kinds, func(k *Kind) bool { return slices.ContainsFunc(c.fields, k.isUnlike) })
}

// shown returns what a request shows of the object that a set is about.
func (s *Schema) shown(u *uncoveredSet, ref ResourceRef, request *Request) view {
	if u.reads() == readsRequest || !u.showsObject(ref, request.Kind.GroupKind()) {
		return view{}
	}
	kinds := []runtimeschema.GroupVersionKind{request.Kind}
	if request.SentAs != nil {
		kinds = append(kinds, *request.SentAs)
	}
	out := view{reads: readsObject, unseen: changesUnseen(ref)}
	for _, gvk := range kinds {
		k, err := s.KindFor(gvk, ref)
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

// shows returns what a version shows of an object: one that is lossy may lack what a condition reads.
func (k *Kind) shows() reads {
	if k.hidden == nil {
		return readsObject
	}
	return k.hidden.shows
}

// isShownIn reports whether a version shows what the conditions of the set read.
func (u *uncoveredSet) isShownIn(k *Kind) bool {
	v := view{reads: k.shows(), kinds: []*Kind{k}}
	return !slices.ContainsFunc(u.conditions, func(c condition) bool { return !v.shows(&c) })
}

// isUnlike reports whether the version has the field of a match condition otherwise than another version.
func (k *Kind) isUnlike(field Pattern) bool { return k.unlike[field.String()] }

// compareFields finds the fields of match conditions that versions have otherwise: a condition that names the field of one version
// says nothing of an object that is shown as another one. It says so in a version that lacks the field, and in all that have it if
// its type is not the same in them.
func (c *compiler) compareFields(s *Schema) {
	fields := map[string]Pattern{}
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

func (c *compiler) isUnlike(gvk runtimeschema.GroupVersionKind, field Pattern) bool {
	own := shapeOf(gvk, c.owner).at(field)
	return slices.ContainsFunc(c.versions[gvk.GroupKind()], func(other runtimeschema.GroupVersionKind) bool {
		if other == gvk || c.keepsNames(gvk, other) || !c.isServed(other) {
			return false
		}
		theirs := shapeOf(other, c.owner).at(field)
		return theirs.exists() && !own.same(theirs)
	})
}

// isServed reports whether objects may be sent in a version. Not all versions of built-in kinds that are known are served.
func (c *compiler) isServed(gvk runtimeschema.GroupVersionKind) bool {
	resource := c.owner[gvk].resource(gvk)
	own, _ := endpoint.Lookup(resource.Group, resource.Resource, "")
	return own.Body.Kind == "" || own.GroupKind() != gvk.GroupKind() || slices.Contains(own.Versions, gvk.Version)
}
