package fieldperm

import (
	"context"
	"slices"
	"sync"

	"github.com/fieldperm/fieldperm/verbs"
)

// Decide asks the authorizer until every requirement is covered or one cannot be (P1). An error is
// the authorizer's (P4) or the context's, and comes with the zero Decision. A verb whose answer is a
// Failure counts as not held, which allows nothing more; if it comes to a denial then, the failure is
// the error.
func Decide(ctx context.Context, authorizer Authorizer, review Review, limits Limits) (Decision, error) {
	d := &decider{authorizer: authorizer, review: review, limits: limits}
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

type decider struct {
	authorizer Authorizer
	review     Review
	limits     Limits
	out        Decision
	// failure is the first that an answer had.
	failure error
	// refusals are by verb.
	refusals map[string]*Refusal
}

// learn adds an answer to the checks, and returns whether the verb is held.
func (d *decider) learn(verb string, generic bool, answer Answer) bool {
	allowed := answer.Allowed
	if generic && !answer.AllowsGeneric() {
		if allowed {
			answer.By = "" // Whoever decided it, it was not this.
		}
		allowed = false
	}
	if !allowed && d.failure == nil {
		d.failure = answer.Failure
	}
	if !allowed && answer.By != "" {
		if d.refusals == nil {
			d.refusals = map[string]*Refusal{}
		}
		d.refusals[verb] = &Refusal{Verb: verb, By: answer.By, Reason: answer.Reason}
	}
	d.out.Checks = append(d.out.Checks, Check{verb, allowed, answer.By})
	return allowed
}

func (d *decider) decide(ctx context.Context) error {
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
	return d.cover(ctx, newPlan(requirements, need))
}

// enter asks for the generic permission, then for the marker, and returns the generic verb that is
// held, "" if none.
func (d *decider) enter(ctx context.Context) (string, error) {
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
		if d.learn(verb, true, answer) {
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
		if d.learn(verbs.Marker, false, answer) {
			d.out.Mode = ModeGranular
			return "", nil
		}
	}
	d.out.Denial = &Denial{Generic: d.review.Generic, More: len(d.review.Requirements), Refusal: d.refusals[verbs.Marker]}
	return "", nil
}

func (d *decider) exhausted() bool { return len(d.out.Checks) >= d.limits.MaxChecks }

// cover works through the plan.
func (d *decider) cover(ctx context.Context, p *plan) error {
	for {
		if g := p.blocked(); g != nil {
			d.deny(p, g)
			return nil
		}
		level := p.next()
		if len(level) == 0 {
			break
		}
		for len(level) > 0 && p.blocked() == nil {
			if level = p.needed(level); len(level) == 0 {
				break
			}
			if d.exhausted() {
				d.denyForCost(p)
				return nil
			}
			n := min(len(level), d.limits.Parallel, d.limits.MaxChecks-len(d.out.Checks))
			if err := d.ask(ctx, p, level[:n]); err != nil {
				return err
			}
			level = level[n:]
		}
	}
	for _, g := range p.groups {
		for _, i := range g.members {
			d.out.CoveredBy[i] = g.covered.String()
		}
	}
	return nil
}

// ask puts verbs of one level at the same time and takes the answers in order, so that the outcome
// does not depend on which comes first. Once one leaves a group without a verb, what is still in
// flight is cancelled, and neither its answers nor its errors count.
func (d *decider) ask(ctx context.Context, p *plan, batch []verbs.Verb) error {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	type outcome struct {
		answer Answer
		err    error
	}
	outcomes := make([]outcome, len(batch))
	ready := make([]chan struct{}, len(batch))
	for i := range batch {
		ready[i] = make(chan struct{})
		put := func() {
			defer close(ready[i])
			outcomes[i].answer, outcomes[i].err = d.authorizer.Authorize(ctx, batch[i].String(), false)
		}
		if len(batch) == 1 {
			put()
		} else {
			wait.Go(put)
		}
	}
	for i, v := range batch {
		<-ready[i]
		if err := outcomes[i].err; err != nil {
			return err
		}
		p.learn(v, d.learn(v.String(), false, outcomes[i].answer))
		if p.blocked() != nil {
			return nil
		}
	}
	return nil
}

func (d *decider) deny(p *plan, g *group) {
	r := &d.review.Requirements[g.members[0]]
	needs := slices.Clone(g.candidates)
	slices.Reverse(needs)
	d.out.Denial = &Denial{Requirement: r, Needs: needs, More: p.uncovered() - 1}
	for _, v := range needs {
		if d.out.Denial.Refusal = d.refusals[v.String()]; d.out.Denial.Refusal != nil {
			break
		}
	}
	if !r.Barred() {
		d.out.Denial.Generic = d.review.Generic
	}
	d.credit(p)
}

// denyForCost ends a review that would need too many checks (P3).
func (d *decider) denyForCost(p *plan) {
	for _, g := range p.groups {
		if g.isCovered() {
			continue
		}
		d.out.Denial = &Denial{Requirement: &d.review.Requirements[g.members[0]], More: p.uncovered() - 1, Checks: d.limits.MaxChecks}
		if v := p.common(); !v.IsZero() {
			d.out.Denial.Needs = []verbs.Verb{v}
		} else if len(g.candidates) > 0 {
			d.out.Denial.Needs = g.candidates[:1]
		}
		break
	}
	d.credit(p)
}

// credit names what is covered in a review that ends in a denial.
func (d *decider) credit(p *plan) {
	for _, g := range p.groups {
		for _, i := range g.members {
			d.out.CoveredBy[i] = g.covered.String()
		}
	}
}
