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

// maxFound bounds the differences that an answer names.
const maxFound = 3

// search looks below a field for fields with another answer.
type search struct {
	judge *Judge
	of    Outcome
	leads map[*fieldtree.Node]bool
	left  int
	found []different
}

// different is a field below with another answer.
type different struct {
	at     string
	answer Answer
}

func (d *different) why() string {
	switch d.answer.Outcome {
	case Yes:
		return "a change of " + d.at + " alone is covered by " + d.answer.By
	case Depends:
		return "below, at " + d.at + ": " + strings.Join(d.answer.Why, "; ")
	case No:
	}
	return "below, at " + d.at + ": " + d.answer.missing()
}

func (s *search) visit(ctx context.Context, p *fieldtree.Place) error {
	for _, c := range p.Node().Children {
		if s.left--; s.left < 0 {
			s.found = append(s.found, different{p.Path.String(), Answer{Outcome: Depends, Why: []string{"there are more fields than can be looked at"}}})
			return nil
		}
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
			if answer.Outcome != s.of && !slices.ContainsFunc(s.found, func(d different) bool { return slices.Equal(d.answer.Why, answer.Why) && d.answer.By == answer.By }) {
				s.found = append(s.found, different{below.Path.String(), answer})
			}
		}
		if len(s.found) >= maxFound {
			return nil
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
		return v.Bars() || v.Apart || len(p.SetsOn(v)) > 0 || slices.ContainsFunc(elsewhere, func(s schema.SetVerb) bool { return isOn(s, v) })
	}
	if slices.ContainsFunc(p.Node().Verbs, special) {
		return true
	}
	return slices.ContainsFunc(p.Node().Trees, func(tree []*fieldtree.Verb) bool { return slices.ContainsFunc(tree, special) })
}

// isOn reports whether a set names a verb, with or without a parameter.
func isOn(s schema.SetVerb, v *fieldtree.Verb) bool {
	return len(s.Actions) == 0 && (&fieldtree.SetBarrier{SetVerb: s}).On(v)
}
