package schema

import (
	"slices"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// concealUnlike adds to h the guards that a field has in the other version and not in this one, although this version has the field under
// the same name. The documents of the two versions may give the field two verbs. A user that writes the field through this version needs
// both.
func (p *versionPair) concealUnlike(h *hidden) {
	isWhole := p.other.Guarded(maxGuardedPlaces, func(at fieldpath.Pattern, theirs *Node) {
		if len(at) == 0 || !p.keepsNames && !p.isSame(at) {
			return
		}
		own, alike := p.reach(at)
		if own == nil {
			return
		}
		for _, permission := range theirs.permissions {
			barred := !permission.MayBar() || slices.ContainsFunc(own.permissions, func(q *Permission) bool { return q.barsLike(permission) })
			bears := slices.ContainsFunc(own.permissions, func(q *Permission) bool { return q.bearsLike(permission, alike) })
			if barred && bears {
				continue
			}
			if !barred {
				h.bar(withoutParameter(permission.verb))
			}
			h.verbs[permission.verb.Name()] = true
			delete(h.shown, at[0].Name)
			h.replicas = h.replicas && !p.replicas.Meets(at)
			h.advise("a field of version \"" + p.kind.Version + "\" has another verb in version \"" + p.other.Version + "\": give it the same in a permission schema for both")
		}
	})
	if !isWhole {
		h.add(p.other, true)
		clear(h.shown)
		h.replicas = false
		h.advise("the versions guard more fields than can be compared: give them one permission schema for all versions")
	}
}

// reach returns the node of this version at a path of the other one, nil if there is none. alike reports whether both paths emit the same
// parameters.
func (p *versionPair) reach(at fieldpath.Pattern) (own *Node, alike bool) {
	own, theirs := p.kind.Root, p.other.Root
	alike = own.emits == theirs.emits
	for _, e := range at {
		if own.list != nil && theirs.list != nil && !slices.EqualFunc(own.list.keys, theirs.list.keys, func(a, b Key) bool { return a.Name == b.Name && a.Emits == b.Emits }) {
			alike = false
		}
		if own, theirs = own.below(e), theirs.below(e); own == nil || theirs == nil {
			return nil, false
		}
		alike = alike && own.emits == theirs.emits
	}
	return own, alike
}

// below returns the node that is one step further, nil if there is none.
func (n *Node) below(e fieldpath.Element) *Node {
	switch {
	case e.Any && n.list != nil:
		return n.list.item
	case e.Any && n.mapping != nil:
		return n.mapping.value
	case !e.Any && n.mapping != nil && (n.mapping.fields[e.Name] != nil || n.mapping.keys[e.Name] != nil || n.mapping.value != nil):
		return n.mapping.Child(e.Name)
	}
	return nil
}

// barsLike reports whether p is a barrier with the verb of other in every case in which other is one. Two conditions are compared by
// identity only.
func (p *Permission) barsLike(other *Permission) bool {
	return p.inAnyMode() == other.inAnyMode() || p.verb == other.verb && p.excluded
}

// bearsLike reports whether p has the verbs of other. alike says whether both paths emit the same parameters.
func (p *Permission) bearsLike(other *Permission, alike bool) bool {
	if other.parameter == "" {
		return p.verb == other.verb
	}
	return alike && (p == other || sameVerb(p, other) && p.treatment == other.treatment && p.expression == nil && other.expression == nil)
}
