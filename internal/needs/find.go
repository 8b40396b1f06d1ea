package needs

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/verbs"
)

// Question is a write of a user.
type Question struct {
	// Reviewer decides as the webhooks do.
	Reviewer admission.Reviewer
	Request  *admissionv1.AdmissionRequest
	// Enter are the generic verbs that the API server asks its authorizers for before admission: patch for a patch, and create as well if the
	// patch creates the object. The marker stands in for each.
	Enter []string
	// Unnamed means that authorization does not see the name of the object, as in a POST.
	Unnamed bool
}

// Answer says what the write needs. The zero Answer denies.
type Answer struct {
	// Allowed means that the user may make the write now.
	Allowed bool
	Entries []Entry
	// Changes are those of the request, in the order of the decision.
	Changes []Change
	// Ask is a smallest set of verbs that the user lacks: with them the write is allowed if Enough, and without any one of them it is not.
	Ask []string
	// Enough means that the decision with Ask is Allow. Otherwise Uncured says why no verb helps.
	Enough  bool
	Uncured []string
}

// Entry is a generic verb that lets the request in, before its fields are compared.
type Entry struct {
	Verb string
	// Marker means that the marker is enough.
	Marker bool
	// Held is the verb that lets the request in, "" if the user holds none.
	Held string
}

// Change is a changed field.
type Change struct {
	Path, Operation string
	// Needs are the verbs of which any one covers the change: granular verbs from specific to general, then the generic verbs.
	Needs []string
	// Held is a verb of Needs that the user holds, "" if there is none.
	Held string
	// Instead is another way to make the change, "" for none.
	Instead string
}

// Find answers a question. An error is not a denial: nothing is known then.
func Find(ctx context.Context, q Question) (*Answer, error) {
	s := newSearch(q)
	first, err := s.review(ctx)
	if err != nil {
		return nil, err
	}
	out := &Answer{}
	entered, err := s.enter(ctx, first, out)
	if err != nil {
		return nil, err
	}
	out.Allowed = first.Allowed && entered
	if err := s.changes(ctx, first, out); err != nil {
		return nil, err
	}
	if out.Allowed {
		out.Enough = true
		return out, nil
	}
	if err := s.complete(ctx, out); err != nil {
		return nil, err
	}
	if out.Enough {
		if err := s.reduce(ctx); err != nil {
			return nil, err
		}
	}
	out.Ask = slices.Clone(s.asked)
	slices.SortFunc(out.Ask, compareVerbs)
	return out, nil
}

// Holds returns the first of some granular verbs that the user holds, "" for none.
func Holds(ctx context.Context, q Question, of []string) (string, error) {
	s := newSearch(q)
	if _, err := s.review(ctx); err != nil {
		return "", err
	}
	return s.held(ctx, of)
}

// enter asks for the verbs of authorization.
func (s *search) enter(ctx context.Context, first *admission.Result, out *Answer) (bool, error) {
	entered := true
	takesMarker := first.Denial == nil || !first.Denial.GenericOnly
	for _, verb := range s.question.Enter {
		held, err := s.enters(ctx, verb, takesMarker)
		if err != nil {
			return false, err
		}
		entry := Entry{Verb: verb, Marker: takesMarker, Held: held}
		if entry.Held == "" {
			entered = false
			switch {
			case !takesMarker:
				out.Uncured = append(out.Uncured, "needs "+verb+": granular verbs do not let writes of this resource in")
			case s.refused[verbs.Marker]:
				out.Uncured = append(out.Uncured, "an authorizer denies "+verbs.Marker)
			default:
				s.add(verbs.Marker)
			}
		}
		out.Entries = append(out.Entries, entry)
		reads, err := s.reads(ctx, verb, entry.Held)
		if err != nil {
			return false, err
		}
		if takesMarker && !reads {
			entered = false
			s.add(readVerb)
			out.Entries = append(out.Entries, Entry{Verb: readVerb})
		}
	}
	return entered, nil
}

// changes lists the changes, and adds for each that no verb of the user covers the most specific verb that no authorizer denies.
func (s *search) changes(ctx context.Context, first *admission.Result, out *Answer) error {
	generic := "" // the generic verb that the user holds
	for _, check := range first.Checks {
		if check.Allowed && slices.Contains(s.generic(), check.Verb) {
			generic = check.Verb
		}
	}
	for i := range first.Requirements {
		r := &first.Requirements[i]
		change := Change{Path: r.Path.String(), Operation: string(r.Operation), Instead: r.Instead, Needs: specificFirst(r.Candidates())}
		granular := len(change.Needs)
		if !r.Barred() {
			change.Needs = append(change.Needs, s.generic()...)
			change.Held = generic
		}
		if change.Held == "" {
			general := slices.Clone(change.Needs[:granular])
			slices.Reverse(general)
			var err error
			if change.Held, err = s.held(ctx, general); err != nil {
				return err
			}
		}
		if change.Held == "" {
			i := slices.IndexFunc(change.Needs[:granular], func(verb string) bool { return !s.refused[verb] })
			if i >= 0 {
				s.add(change.Needs[i])
			} else {
				out.Uncured = append(out.Uncured, uncovered(&change, granular))
			}
		}
		out.Changes = append(out.Changes, change)
	}
	return nil
}

func uncovered(c *Change, granular int) string {
	path := c.Path
	if path == "" {
		path = "the object as a whole"
	}
	if granular == 0 {
		return path + ": no granular verb covers the change"
	}
	return path + ": an authorizer denies each verb that covers the change"
}

// complete adds verbs until the decision is Allow, or until no verb helps. The verbs of the changes may not be enough, because a request may
// need too many checks (P3): then the verb is added that the denial names.
func (s *search) complete(ctx context.Context, out *Answer) error {
	for {
		result, err := s.review(ctx)
		if err != nil {
			return err
		}
		if result.Allowed {
			out.Enough = len(out.Uncured) == 0
			return nil
		}
		verb := s.cureOf(result.Denial)
		if verb == "" || slices.Contains(s.asked, verb) {
			if len(out.Uncured) == 0 {
				out.Uncured = append(out.Uncured, result.Message)
			}
			return nil
		}
		s.add(verb)
	}
}

// cureOf returns a verb that would lead a denied request further, "" for none. A verb that an authorizer denies does not.
func (s *search) cureOf(d *fieldperm.Denial) string {
	var cures []string
	switch {
	case d == nil || d.IsRefusal():
	case d.Requirement != nil:
		// With d.Checks it is the only one, and covers the most changes.
		for _, v := range d.Needs {
			cures = append(cures, v.String())
		}
	case !d.GenericOnly:
		cures = []string{verbs.Marker}
	}
	for _, verb := range cures {
		if !s.refused[verb] {
			return verb
		}
	}
	return ""
}

// reduce takes away each verb without which the request is allowed all the same: another verb covers its changes too.
func (s *search) reduce(ctx context.Context) error {
	least, err := Smallest(s.asked, func(of []string) (bool, error) {
		s.asked = of
		return s.allowed(ctx)
	})
	s.asked = least
	return err
}

// Smallest takes away each verb without which the others are enough. What is left is enough if all verbs are, and no verb of it can be left
// out.
func Smallest(all []string, enough func(of []string) (bool, error)) ([]string, error) {
	out := slices.Clone(all)
	for _, verb := range all {
		without := slices.DeleteFunc(slices.Clone(out), func(other string) bool { return other == verb })
		is, err := enough(without)
		if err != nil {
			return nil, err
		}
		if is {
			out = without
		}
	}
	return out, nil
}

// allowed reports whether the request is let in and allowed with the verbs that were added.
func (s *search) allowed(ctx context.Context) (bool, error) {
	result, err := s.review(ctx)
	if err != nil || !result.Allowed {
		return false, err
	}
	for _, verb := range s.question.Enter {
		held, err := s.enters(ctx, verb, true)
		if err != nil || held == "" {
			return false, err
		}
		reads, err := s.reads(ctx, verb, held)
		if err != nil || !reads {
			return false, err
		}
	}
	return true, nil
}

func specificFirst(candidates []verbs.Verb) []string {
	out := make([]string, 0, len(candidates)+2)
	for _, v := range slices.Backward(candidates) {
		if text := v.String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
