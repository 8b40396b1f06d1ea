package schema

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Excluded is the name of the barriers of a kind's own schemas in the result of Barriers.
const Excluded = "excluded"

// SetBarrier returns the name of an UncoveredPermissionSet's barriers in the result of Barriers. Sets with different content have
// different names.
func SetBarrier(d *UncoveredDocument) string {
	return BarrierOf(d.Source, d.Set.Spec)
}

// BarrierOf returns a name of what a document forbids that changes with its spec.
func BarrierOf(source string, spec any) string {
	content, err := json.Marshal(spec)
	if err != nil {
		return source // The spec was decoded from JSON, so this does not happen.
	}
	sum := sha256.Sum256(content)
	return source + " " + base64.RawURLEncoding.EncodeToString(sum[:])
}

// Barriers returns the names of the barriers on fields of a body that is sent to an endpoint, under any of its names. Conditional
// barriers and match conditions count as true.
func (s *Schema) Barriers(body *Kind, refs ...ResourceRef) []string {
	var out []string
	if body.MayBar() || body.MayBarElsewhere() {
		out = append(out, Excluded)
	}
	for i := range s.uncovered {
		set := &s.uncovered[i]
		for _, ref := range refs {
			if set.denies() && set.coversAny(ref) && (body.hidden != nil || body.isGuardedBy(set.verbs)) {
				out = append(out, set.barrier)
				break
			}
		}
	}
	return out
}

// MaxGuardedPlaces is how many places of a kind are visited to find or count its guarded fields, because a schema may unfold without bound.
const MaxGuardedPlaces = 5000

// isGuardedBy reports whether a place of the kind that is charged can have one of the verbs.
func (k *Kind) isGuardedBy(of VerbSet) bool {
	found := false
	k.Guarded(MaxGuardedPlaces, func(_ fieldpath.Pattern, n *Node) { found = found || n.GuardedBy(of) })
	return found
}

// GuardedBy reports whether the node is charged and can have one of the verbs.
func (n *Node) GuardedBy(of VerbSet) bool {
	if n.role != RoleNone {
		return false
	}
	return slices.ContainsFunc(n.permissions, func(p *Permission) bool {
		for v := range of {
			if p.MayBe(v) {
				return true
			}
		}
		return false
	})
}
