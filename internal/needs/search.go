package needs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/verbs"
)

// search decides on one request with verbs added to those of its user.
type search struct {
	question Question
	reviewer admission.Reviewer
	// asked are the verbs that were added, in their order.
	asked []string
	// refused are verbs that an authorizer denies, so that no grant helps.
	refused map[string]bool
	// known are the answers of the authorizers of the user. No verb is asked for twice.
	known map[question]fieldperm.AuthorizerDecision

	conditions admission.Conditions
	// user decides on the request, and entry on it as authorization sees it.
	user, entry fieldperm.Authorizer
}

type question struct {
	verb    string
	generic bool
	// entering asks about the request as authorization sees it.
	entering bool
}

func newSearch(q Question) *search {
	s := &search{question: q, reviewer: q.Reviewer, refused: map[string]bool{}, known: map[question]fieldperm.AuthorizerDecision{}}
	s.user = q.Reviewer.Authorizer(q.Request)
	entering := *q.Request
	if q.Unnamed {
		entering.Name = ""
	}
	s.entry = q.Reviewer.Authorizer(&entering)
	s.reviewer.Authorizer = func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return granting{s, false} }
	if conditional := q.Reviewer.Conditional; conditional != nil {
		s.reviewer.Conditional = func(write *admission.Write, _ fieldperm.Authorizer) (admission.Conditions, error) {
			var err error
			s.conditions, err = conditional(write, s.user)
			return s.conditions, err
		}
	}
	return s
}

// review returns the decision of both webhooks.
func (s *search) review(ctx context.Context) (*admission.Result, error) {
	return s.reviewer.Both(ctx, s.question.Request)
}

func (s *search) generic() []string {
	if s.question.Request.Operation == admissionv1.Create {
		return []string{"create"}
	}
	return []string{"update", "patch"}
}

func (s *search) add(verb string) {
	if !slices.Contains(s.asked, verb) {
		s.asked = append(s.asked, verb)
	}
}

// held returns the first of some granular verbs that the user holds.
func (s *search) held(ctx context.Context, of []string) (string, error) {
	for _, verb := range of {
		allowed, err := s.holds(ctx, question{verb: verb})
		if err != nil {
			return "", err
		}
		if allowed {
			return verb, nil
		}
	}
	return "", nil
}

// holds asks for one verb as a review does: conditions, then the authorizers and the verbs that were added. An authorizer that failed is an
// error unless the verb is held, because it might have allowed or denied it.
func (s *search) holds(ctx context.Context, q question) (bool, error) {
	var failure error
	if s.conditions != nil {
		decision, err := s.conditions.Authorize(ctx, q.verb, q.generic)
		// A Deny does not reach a holder of the generic permission on the floor (W4).
		beyond := decision.Outcome == fieldperm.Deny && q.generic && admission.BeyondBarriers(s.question.Request)
		if err != nil || decision.Outcome != fieldperm.NoOpinion && !beyond {
			return s.taken(q, decision), err
		}
		failure = decision.Failure
	}
	decision, err := granting{s, q.entering}.Authorize(ctx, q.verb, q.generic)
	if err != nil {
		return false, err
	}
	allowed := s.taken(q, decision)
	if failure = cmp.Or(decision.Failure, failure); !allowed && failure != nil {
		return false, failure
	}
	return allowed, nil
}

func (s *search) taken(q question, decision fieldperm.AuthorizerDecision) bool {
	if decision.Outcome == fieldperm.Deny {
		s.refused[q.verb] = true
	}
	if q.generic {
		return decision.AllowsGeneric()
	}
	return decision.Allowed()
}

// enters reports whether the user holds a generic verb that lets the request in, or else the marker.
func (s *search) enters(ctx context.Context, verb string, marker bool) (held string, err error) {
	asked := []question{{verb: verb, generic: true, entering: true}}
	if marker {
		asked = append(asked, question{verb: verbs.Marker, entering: true})
	}
	for _, q := range asked {
		allowed, err := s.holds(ctx, q)
		if err != nil {
			return "", err
		}
		if allowed {
			return q.verb, nil
		}
	}
	return "", nil
}

const readVerb = "get"

// reads reports whether the user holds get, if the request is let in by another verb than its own: without get the marker lets nobody in to
// update or patch (A7).
func (s *search) reads(ctx context.Context, verb, held string) (bool, error) {
	if verb == "create" || held == verb {
		return true, nil
	}
	return s.holds(ctx, question{verb: readVerb, entering: true})
}

// granting is the authorizer of the user, with the verbs that were added. A Deny stays one, whatever is granted.
type granting struct {
	*search
	entering bool
}

// Authorize asks for one verb.
func (g granting) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	key, of := question{verb, generic, g.entering}, g.user
	if g.entering {
		of = g.entry
	}
	decision, ok := g.known[key]
	if !ok {
		var err error
		if decision, err = of.Authorize(ctx, verb, generic); err != nil {
			return decision, err
		}
		g.known[key] = decision
	}
	if decision.Outcome == fieldperm.NoOpinion && slices.Contains(g.asked, verb) {
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow}, nil
	}
	return decision, nil
}

// compareVerbs orders verbs: those that are no granular verbs, the marker, then by their text.
func compareVerbs(a, b string) int {
	rank := func(verb string) int {
		switch {
		case !strings.HasPrefix(verb, verbs.Marker):
			return 0
		case verb == verbs.Marker:
			return 1
		}
		return 2
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}
