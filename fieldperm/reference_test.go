package fieldperm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fieldperm/fieldperm/verbs"
)

// The reference is the deliberately simple implementation: it groups by text, searches all groups for every check, and counts nothing. It
// was in use before plan; the tests compare plan with it.

// decideByReference is Decide.
func decideByReference(ctx context.Context, authorizer Authorizer, review Review, limits Limits) (Decision, error) {
	d := &referenceDecider{authorizer: authorizer, review: review, limits: limits, refusals: map[string]*Refusal{}}
	if d.limits.MaxChecks <= 0 {
		d.limits.MaxChecks = DefaultMaxChecks
	}
	d.limits.Parallel = max(d.limits.Parallel, 1)
	if err := d.decide(ctx); err != nil {
		return Decision{}, err
	}
	if d.out.Denial != nil && d.failure != nil {
		return Decision{}, d.failure
	}
	d.out.Allowed = d.out.Denial == nil
	return d.out, nil
}

type referenceGroup struct {
	candidates []verbs.Verb
	levels     []int // of the candidates
	members    []int
	covered    verbs.Verb
}

func (g *referenceGroup) isCovered() bool { return !g.covered.IsZero() }

// levelsOf counts the steps from general to specific. A verb with a parameter is at the level of the next verb without one.
func levelsOf(chain []verbs.Verb) []int {
	var out []int
	level := 0
	for i, v := range chain {
		_, parameterized := v.Parameter()
		if i > 0 {
			if _, after := chain[i-1].Parameter(); !after || parameterized {
				level++
			}
		}
		out = append(out, level)
	}
	return out
}

type referencePlan struct {
	groups  []*referenceGroup
	answers map[verbs.Verb]bool
	level   int
}

func newReferencePlan(requirements []Requirement, need []int) *referencePlan {
	p := &referencePlan{answers: map[verbs.Verb]bool{}}
	byKey := map[string]*referenceGroup{}
	for _, i := range need {
		r := &requirements[i]
		levels := levelsOf(r.Chain)[max(r.Barrier, 0):]
		key := fmt.Sprint(levels, r.Candidates())
		if byKey[key] == nil {
			byKey[key] = &referenceGroup{candidates: r.Candidates(), levels: levels}
			p.groups = append(p.groups, byKey[key])
		}
		byKey[key].members = append(byKey[key].members, i)
	}
	return p
}

func (p *referencePlan) next() []verbs.Verb {
	type weight struct {
		verb           verbs.Verb
		members, fewer int
	}
	for ; ; p.level++ {
		weights := map[verbs.Verb]*weight{}
		deeper := false
		for _, g := range p.groups {
			if g.isCovered() {
				continue
			}
			for i, v := range g.candidates {
				deeper = deeper || g.levels[i] > p.level
				if _, asked := p.answers[v]; g.levels[i] != p.level || asked {
					continue
				}
				left := len(g.candidates) - 1 - i
				w := weights[v]
				if w == nil {
					w = &weight{verb: v, fewer: left}
					weights[v] = w
				}
				w.members += len(g.members)
				w.fewer = min(w.fewer, left)
			}
		}
		if len(weights) > 0 {
			var order []*weight
			for _, w := range weights {
				order = append(order, w)
			}
			slices.SortFunc(order, func(a, b *weight) int {
				return cmp.Or(cmp.Compare(b.members, a.members), cmp.Compare(a.fewer, b.fewer), strings.Compare(a.verb.String(), b.verb.String()))
			})
			var out []verbs.Verb
			for _, w := range order {
				out = append(out, w.verb)
			}
			return out
		}
		if !deeper {
			return nil
		}
	}
}

func (p *referencePlan) record(v verbs.Verb, allowed bool) {
	p.answers[v] = allowed
	for _, g := range p.groups {
		if allowed && !g.isCovered() && slices.Contains(g.candidates, v) {
			g.covered = v
		}
	}
}

func (p *referencePlan) blocked() *referenceGroup {
	for _, g := range p.groups {
		open := slices.ContainsFunc(g.candidates, func(v verbs.Verb) bool { _, asked := p.answers[v]; return !asked })
		if !g.isCovered() && !open {
			return g
		}
	}
	return nil
}

func (p *referencePlan) remaining() int {
	n := 0
	for _, g := range p.groups {
		if !g.isCovered() {
			n += len(g.members)
		}
	}
	return n
}

func (p *referencePlan) common() verbs.Verb {
	var shared []verbs.Verb
	first := true
	for _, g := range p.groups {
		switch {
		case g.isCovered():
		case first:
			shared, first = slices.Clone(g.candidates), false
		default:
			shared = slices.DeleteFunc(shared, func(v verbs.Verb) bool { return !slices.Contains(g.candidates, v) })
		}
	}
	if len(shared) == 0 {
		return verbs.Verb{}
	}
	return shared[len(shared)-1]
}

func (p *referencePlan) needed(level []verbs.Verb) []verbs.Verb {
	return slices.DeleteFunc(level, func(v verbs.Verb) bool {
		return !slices.ContainsFunc(p.groups, func(g *referenceGroup) bool { return !g.isCovered() && slices.Contains(g.candidates, v) })
	})
}

// alike returns the number of verbs before the first position where some verbs have a parameter and others have none.
func alike(level []verbs.Verb) int {
	_, first := level[0].Parameter()
	for i, v := range level {
		if _, parameterized := v.Parameter(); parameterized != first {
			return i
		}
	}
	return len(level)
}

type referenceDecider struct {
	authorizer Authorizer
	review     Review
	limits     Limits
	out        Decision
	failure    error
	refusals   map[string]*Refusal
}

func (d *referenceDecider) record(verb string, generic bool, answer AuthorizerDecision) bool {
	allowed := answer.Allowed()
	if generic && !answer.AllowsGeneric() {
		if allowed {
			answer.By = ""
		}
		allowed = false
	}
	if !allowed && d.failure == nil {
		d.failure = answer.Failure
	}
	if answer.Outcome == Deny && answer.By != "" {
		d.refusals[verb] = &Refusal{Verb: verb, By: answer.By, Reason: answer.Reason}
	}
	d.out.Checks = append(d.out.Checks, Check{verb, allowed, answer.By, answer.Skipped})
	return allowed
}

func (d *referenceDecider) decide(ctx context.Context) error {
	requirements := d.review.Requirements
	d.out.CoveredBy = make([]string, len(requirements))
	generic, err := d.enter(ctx)
	if err != nil || d.out.Denial != nil {
		return err
	}
	var need []int
	for i := range requirements {
		switch {
		case requirements[i].Barred():
			need = append(need, i)
		case generic != "":
			d.out.CoveredBy[i] = generic
		case !d.review.UncoveredOnly:
			need = append(need, i)
		}
	}
	if len(need) > 0 && d.out.Mode == ModeGeneric {
		d.out.Mode = ModeUncovered
	}
	p := newReferencePlan(requirements, need)
	defer func() {
		for _, g := range p.groups {
			for _, i := range g.members {
				d.out.CoveredBy[i] = g.covered.String()
			}
		}
	}()
	return d.cover(ctx, p)
}

func (d *referenceDecider) enter(ctx context.Context) (string, error) {
	if d.review.UncoveredOnly {
		d.out.Mode = ModeUncovered
		return "", nil
	}
	for _, verb := range d.review.Generic {
		if d.exhausted() {
			break
		}
		answer, err := d.authorizer.Authorize(ctx, verb, true)
		if err != nil {
			return "", err
		}
		if d.record(verb, true, answer) {
			d.out.Mode = ModeGeneric
			return verb, nil
		}
	}
	d.out.Mode = ModeNone
	if !d.exhausted() {
		answer, err := d.authorizer.Authorize(ctx, verbs.Marker, false)
		if err != nil {
			return "", err
		}
		if d.record(verbs.Marker, false, answer) {
			d.out.Mode = ModeGranular
			return "", nil
		}
	}
	d.out.Denial = &Denial{Generic: d.review.Generic, More: len(d.review.Requirements), Refusal: d.refusals[verbs.Marker]}
	return "", nil
}

func (d *referenceDecider) exhausted() bool { return len(d.out.Checks) >= d.limits.MaxChecks }

func (d *referenceDecider) cover(ctx context.Context, p *referencePlan) error {
	for {
		if g := p.blocked(); g != nil {
			d.deny(p, g)
			return nil
		}
		level := p.next()
		if len(level) == 0 {
			return nil
		}
		for p.blocked() == nil {
			if level = p.needed(level); len(level) == 0 {
				break
			}
			if d.exhausted() {
				d.denyForCost(p)
				return nil
			}
			n := min(alike(level), d.limits.Parallel, d.limits.MaxChecks-len(d.out.Checks))
			if err := d.ask(ctx, p, level[:n]); err != nil {
				return err
			}
			level = level[n:]
		}
	}
}

func (d *referenceDecider) ask(ctx context.Context, p *referencePlan, batch []verbs.Verb) error {
	type outcome struct {
		answer AuthorizerDecision
		err    error
	}
	outcomes := make([]outcome, len(batch))
	var wait sync.WaitGroup
	for i, v := range batch {
		wait.Go(func() { outcomes[i].answer, outcomes[i].err = d.authorizer.Authorize(ctx, v.String(), false) })
	}
	wait.Wait()
	for i, v := range batch {
		if err := outcomes[i].err; err != nil {
			return err
		}
		p.record(v, d.record(v.String(), false, outcomes[i].answer))
		if p.blocked() != nil {
			return nil
		}
	}
	return nil
}

func (d *referenceDecider) deny(p *referencePlan, g *referenceGroup) {
	r := &d.review.Requirements[g.members[0]]
	needs := slices.Clone(g.candidates)
	slices.Reverse(needs)
	d.out.Denial = &Denial{Requirement: r, Needs: needs, More: p.remaining() - 1}
	for _, v := range needs {
		if d.out.Denial.Refusal = d.refusals[v.String()]; d.out.Denial.Refusal != nil {
			break
		}
	}
	if !r.Barred() {
		d.out.Denial.Generic = d.review.Generic
	}
}

func (d *referenceDecider) denyForCost(p *referencePlan) {
	for _, g := range p.groups {
		if g.isCovered() {
			continue
		}
		d.out.Denial = &Denial{Requirement: &d.review.Requirements[g.members[0]], More: p.remaining() - 1, Checks: d.limits.MaxChecks}
		if v := p.common(); !v.IsZero() {
			d.out.Denial.Needs = []verbs.Verb{v}
		} else {
			d.out.Denial.Needs = g.candidates[:1]
		}
		return
	}
}
