package access

import (
	"slices"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
)

// field is what a question is about, as far as it is the same for all subjects.
type field struct {
	chains [][]fieldtree.Link
	// existence are the verbs of the existence of a new object (C5). It is empty for other writes.
	existence []fieldtree.Link
	// free means that the field needs no verb besides the marker.
	free bool
	// onFloor means that no barrier reaches users with the generic permission (W4).
	onFloor bool
	// unchanged means that no request changes the field.
	unchanged bool
	// always are the conditions of all ways but those of wildcards.
	always []Condition
}

func fieldOf(w *Write, p *fieldtree.Place) *field {
	f := &field{chains: p.Charges(), onFloor: w.OnFloor, unchanged: w.drops(p)}
	switch {
	case !w.posts():
	case len(p.Path) == 0:
		f.chains = [][]fieldtree.Link{p.Kind.Existence()}
	default:
		f.existence = p.Kind.Existence()
	}
	switch p.Node().Role {
	case schema.RoleServerWritten:
		f.unchanged = true
	case schema.RoleIdentity:
		f.free = w.posts()
	case schema.RoleOwnership, schema.RoleNone:
	}
	k := p.Kind
	if k.Lossy {
		// A write through the version is charged at the root as well (C3).
		f.chains = append(f.chains, k.Place().Chains()...)
	}
	if k.Instead != "" {
		f.always = append(f.always, Condition{Form: Versioned, Text: "a write through version " + k.Version + " may need verbs of fields that it does not show: " + k.Instead})
	}
	if w.OnFloor {
		for i, chain := range f.chains {
			f.chains[i] = withoutSets(chain)
		}
		f.existence = withoutSets(f.existence)
	}
	return f
}

// withoutSets returns a chain without the barriers of sets, which do not hold for writes of the floor.
func withoutSets(chain []fieldtree.Link) []fieldtree.Link {
	out := slices.Clone(chain)
	for i := range out {
		out[i].Lost = slices.DeleteFunc(slices.Clone(out[i].Lost), func(l fieldtree.Loss) bool { return l.Set != "" })
	}
	return out
}
