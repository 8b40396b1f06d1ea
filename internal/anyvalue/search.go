package anyvalue

import (
	"context"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
)

// maxPlaces bounds the places of one search, because a schema may unfold without bound.
const maxPlaces = 20_000

// maxFound bounds the differences that an answer names if the judge does not say another bound. maxNamed bounds the fields of each.
const (
	maxFound = 3
	maxNamed = 3
)

// search looks below a field for fields with another answer.
type search struct {
	judge *Judge
	of    Outcome
	leads map[*fieldtree.Node]bool
	left  int
	// most bounds the differences.
	most  int
	found []different
}

// different is an answer that is not that of the field above, and the first fields below that have it.
type different struct {
	at     []string
	others bool
	answer Answer
}

func (d *different) why() string {
	at := "below, at " + strings.Join(d.at, ", ")
	if d.others {
		at += " and others"
	}
	switch d.answer.Outcome {
	case Yes:
		return "a change of " + d.at[0] + " alone is covered by " + d.answer.By
	case Depends:
		return at + ": " + strings.Join(d.answer.Why, "; ")
	case No:
	}
	return at + ": " + d.answer.missing()
}

// add adds the answer about a field, and reports whether the search goes on.
func (s *search) add(at string, answer Answer) bool {
	for i := range s.found {
		if d := &s.found[i]; d.answer.is(answer) {
			if len(d.at) < maxNamed {
				d.at = append(d.at, at)
			} else {
				d.others = true
			}
			return true
		}
	}
	if len(s.found) == s.most {
		s.stop(at, "there are more differences than are named here")
		return false
	}
	s.found = append(s.found, different{at: []string{at}, answer: answer})
	return true
}

// stop ends the search. The answer says why.
func (s *search) stop(at, why string) {
	s.left = -1
	s.found = append(s.found, different{at: []string{at}, answer: Answer{Outcome: Depends, Why: []string{why}}})
}

// is reports whether two answers say the same.
func (a *Answer) is(other Answer) bool {
	return a.Outcome == other.Outcome && a.By == other.By && a.Barred == other.Barred && a.NotEnforced == other.NotEnforced &&
		slices.Equal(a.Why, other.Why) && slices.Equal(a.Needs, other.Needs) && slices.Equal(a.Entry, other.Entry)
}

func (s *search) visit(ctx context.Context, p *fieldtree.Place) error {
	for _, c := range p.Node().Children {
		switch {
		case s.left < 0:
			return nil
		case s.left == 0:
			s.stop(p.Path.String(), "there are more fields than can be looked at")
			return nil
		}
		s.left--
		if !s.leads[c.Node] {
			continue
		}
		below := p.Child(c)
		if below.Repeats() != nil {
			continue
		}
		// A field without a barrier and without a verb that stands apart has the answer of the field above, if that is yes.
		if s.of == Yes && isSpecial(below, s.judge.Elsewhere) || s.of == No && hasVerbs(c.Node) {
			answer, err := s.judge.own(ctx, below)
			if err != nil {
				return err
			}
			if answer.Outcome != s.of && !s.add(below.Path.String(), answer) {
				return nil
			}
		}
		if err := s.visit(ctx, below); err != nil {
			return err
		}
	}
	return nil
}

func hasVerbs(n *fieldtree.Node) bool {
	return len(n.Verbs) > 0 || slices.ContainsFunc(n.Trees, func(tree []*fieldtree.Verb) bool { return len(tree) > 0 })
}

// isSpecial reports whether a verb of the place takes it out of what is above.
func isSpecial(p *fieldtree.Place, elsewhere []schema.SetVerb) bool {
	special := func(v *fieldtree.Verb) bool {
		return v.Bars() || len(p.SetsOn(v)) > 0 || slices.ContainsFunc(elsewhere, func(s schema.SetVerb) bool { return isOn(s, v) })
	}
	if len(p.Node().Barring) > 0 || slices.ContainsFunc(p.Node().Verbs, special) {
		return true
	}
	return slices.ContainsFunc(append(slices.Clip(p.Node().Trees), p.Node().Beside), func(tree []*fieldtree.Verb) bool { return slices.ContainsFunc(tree, special) })
}

// isOn reports whether a set names a verb, with or without a parameter.
func isOn(s schema.SetVerb, v *fieldtree.Verb) bool {
	return len(s.Actions) == 0 && (&fieldtree.SetBarrier{SetVerb: s}).On(v)
}
