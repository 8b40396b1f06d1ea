package anyvalue

import (
	"cmp"
	"context"
	"slices"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// Judge decides on the fields of one object for one user.
type Judge struct {
	Holdings *Holdings
	// Verb is the verb that the API server asks for: update for a PUT, patch for a PATCH.
	Verb string
	// TakesMarker says whether granular verbs cover fields of the resource (A2).
	TakesMarker bool
	// LetIn reports whether the API server's authorizers let the request in, with fieldperm's among them. nil means that no API server is asked: the
	// verb or the marker lets the user in.
	LetIn func(context.Context) (bool, error)
	// OnFloor means that the object may be on the floor (W4), where no barrier of a set counts.
	OnFloor bool
	// Elsewhere are barriers of sets for other subresources of the object: they hold for the owners of fields (D8).
	Elsewhere []schema.SetVerb
	// Differences bounds the different answers below a field that its answer names; 0 is 3.
	Differences int

	entered *entry
}

// entry is what lets the user write the object at all.
type entry struct {
	Certainty
	// generic is the generic permission, by the verb that is held.
	generic Holding
	by      string
	// marker is the marker. It is not asked for if the generic permission is held.
	marker Holding
	// denied are the conditions under which a policy denies the request.
	denied []string
	// answer is the answer for every field, if nothing lets the user in.
	answer Answer
}

// granularAccess is the certainty with which granular verbs count.
func (e *entry) granularAccess(takesMarker bool) Certainty {
	if takesMarker {
		return max(e.generic.Certainty, e.marker.Certainty)
	}
	return e.generic.Certainty
}

var genericVerbs = []string{"update", "patch"}

const readVerb = "get"

// enter asks for the generic permission, for the marker and get, and whether the API server lets the user in.
func (j *Judge) enter(ctx context.Context) (*entry, error) {
	if j.entered != nil {
		return j.entered, nil
	}
	e := &entry{}
	own := Holding{}
	for _, verb := range genericVerbs {
		h, err := j.Holdings.Verb(ctx, verb, true)
		if err != nil {
			return nil, err
		}
		if h.Denied == Always && j.OnFloor {
			// A Deny does not reach holders of the generic permission there. Whether the user is one, the policy hides.
			h = Holding{Certainty: Perhaps, Denied: Perhaps, Conditions: []string{"ConditionalPolicy " + h.By + " denies " + verb + ", unless the write is on the floor"}}
		}
		if h.Denied == Always {
			e.answer = Answer{Why: []string{"ConditionalPolicy " + h.By + " denies " + verb}}
			j.entered = e
			return e, nil
		}
		if h.Denied == Perhaps {
			e.denied = append(e.denied, h.Conditions...)
		}
		if verb == j.Verb {
			own = h
		}
		if h.Certainty > e.generic.Certainty || h.Certainty == e.generic.Certainty && verb == j.Verb {
			e.generic, e.by = h, verb
		}
	}
	if e.generic.Certainty != Always || own.Certainty != Always {
		var err error
		if e.marker, err = j.Holdings.Verb(ctx, verbs.Marker, false); err != nil {
			return nil, err
		}
	}
	if err := j.admit(ctx, e, own); err != nil {
		return nil, err
	}
	j.entered = e
	return e, nil
}

// admit finds whether the user gets to admission.
func (j *Judge) admit(ctx context.Context, e *entry, own Holding) error {
	e.Certainty = own.Certainty
	if j.TakesMarker {
		e.Certainty = max(e.Certainty, e.marker.Certainty)
	}
	lacksGet := false
	if own.Certainty != Always && e.Certainty != Never {
		// Neither the marker nor a condition lets a user in who may not read (A7).
		read, err := j.Holdings.Verb(ctx, readVerb, false)
		if err != nil {
			return err
		}
		e.Certainty, lacksGet = min(e.Certainty, read.Certainty), read.Certainty == Never
	}
	if j.LetIn != nil {
		in, err := j.LetIn(ctx)
		if err != nil {
			return err
		}
		if e.Certainty = Never; in {
			e.Certainty = Always
		} else if j.TakesMarker && e.marker.Certainty == Always && !lacksGet {
			e.answer = Answer{NotEnforced: true, Entry: []string{j.Verb}}
			return nil
		}
	}
	switch {
	case e.Certainty != Never:
	case lacksGet:
		e.answer = Answer{Entry: []string{readVerb}}
	default:
		e.answer = Answer{Entry: []string{j.Verb}}
		if j.TakesMarker {
			e.answer.Entry = append(e.answer.Entry, verbs.Marker)
		}
	}
	return nil
}

// Entry returns no if nothing lets the user write the object, and yes otherwise.
func (j *Judge) Entry(ctx context.Context) (Answer, error) {
	e, err := j.enter(ctx)
	if err != nil || e.Certainty == Never {
		if err == nil {
			return e.answer, nil
		}
		return Answer{}, err
	}
	return Answer{Outcome: Yes}, nil
}

// OfOwners returns why a change that a verb covers may be refused because of the owner of the field, "" if it may not. chain are the verbs from
// general to specific.
func (j *Judge) OfOwners(chain []string, by string) string {
	at := slices.Index(chain, by)
	for _, s := range j.Elsewhere {
		if len(s.Actions) == 0 && slices.Contains(chain[at+1:], s.Verb.String()) {
			return ownersText(s)
		}
	}
	return ""
}

func ownersText(s schema.SetVerb) string {
	return setName(s.Source) + " makes " + s.Verb.String() + " a barrier for another subresource, and the change may change the owner of the field"
}

// Field decides on a change of a field to any value, with all fields below it.
func (j *Judge) Field(ctx context.Context, p *fieldtree.Place) (Answer, error) {
	out, err := j.field(ctx, p)
	if err != nil || out.Outcome == Depends || !hasOwners(p) || len(p.Path) == 0 {
		return out, err
	}
	// The owners of each field are in the managedFields, and changing them needs the verb of that field (D8).
	whole, err := j.field(ctx, p.Kind.Place())
	if err != nil || whole.Outcome == out.Outcome {
		return out, err
	}
	return Answer{Outcome: Depends, Why: []string{"to change the owner of a field in .metadata.managedFields takes the verb of that field"}}, nil
}

// hasOwners reports whether a place has the managedFields.
func hasOwners(p *fieldtree.Place) bool {
	n := p.Node()
	return n.Role == schema.RoleOwnership || slices.ContainsFunc(n.Children, func(c fieldtree.Child) bool { return c.Role == schema.RoleOwnership })
}

func (j *Judge) field(ctx context.Context, p *fieldtree.Place) (Answer, error) {
	out, err := j.own(ctx, p)
	if err != nil || out.Outcome == Depends || j.entered.Certainty == Never {
		return out, err
	}
	below := &search{judge: j, of: out.Outcome, leads: p.Kind.Leading(), left: maxPlaces, most: cmp.Or(j.Differences, maxFound)}
	if err := below.visit(ctx, p); err != nil {
		return Answer{}, err
	}
	if len(below.found) == 0 {
		return out, nil
	}
	mixed := Answer{Outcome: Depends}
	for _, f := range below.found {
		mixed.Why = append(mixed.Why, f.why())
	}
	return mixed, nil
}
