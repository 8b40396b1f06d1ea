package schema

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// Excluded is what Barriers calls the barriers that a kind's own schemas have.
const Excluded = "excluded"

// SetBarrier is what Barriers calls the barriers of an UncoveredPermissionSet. Another content makes another one.
func SetBarrier(d *UncoveredDocument) string {
	content, err := json.Marshal(d.Set.Spec)
	if err != nil {
		return d.Source // It was decoded from JSON.
	}
	sum := sha256.Sum256(content)
	return d.Source + " " + base64.RawURLEncoding.EncodeToString(sum[:])
}

func everywhere(Pattern) bool { return true }

// Barriers returns what bars fields of a body that is sent to an endpoint, under any of its names. Match conditions and
// conditions of schemas count as true.
func (s *Schema) Barriers(body *Kind, refs ...ResourceRef) []string {
	var out []string
	if body.MayBar() || body.MayBarElsewhere() {
		out = append(out, Excluded)
	}
	for i := range s.uncovered {
		set := &s.uncovered[i]
		for _, ref := range refs {
			if set.coversAny(ref) && (body.hidden != nil || set.guards(body, everywhere) > 0) {
				out = append(out, set.barrier)
				break
			}
		}
	}
	return out
}
