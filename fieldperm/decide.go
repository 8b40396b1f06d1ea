package fieldperm

import (
	"context"
	"slices"
	"sync"

	"github.com/fieldperm/fieldperm/verbs"
)

// Decide asks the authorizer for verbs until every requirement is covered or one requirement cannot be covered (P1). It returns the error
// of the authorizer (P4) or of the context, always with the zero Decision. If an answer has a Failure, its verb counts as not held, so a
// Failure never allows more. If the review then ends in a denial, Decide returns the Failure as the error.
func Decide(ctx context.Context, authorizer Authorizer, review Review, limits Limits) (Decision, error) {
	d := decider{authorizer: authorizer, review: review, limits: limits}
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
	return d.out, nil
}

type decider struct {
	authorizer Authorizer
	review     Review
	limits     Limits
	out        Decision
	// failure is the first Failure in an answer.
	failure error
	// refusals are the Deny answers, by verb.
	refusals map[string]*Refusal
}

// record adds an answer to the checks and reports whether the user holds the verb.
func (d *decider) record(verb string, generic bool, decision AuthorizerDecision) bool {
	allowed := decision.Allowed()
	if generic && !decision.AllowsGeneric() {
		if allowed {
			decision.By = "" // This Allow does not count, so its authorizer did not decide.
		}
		allowed = false
	}
	if !allowed && d.failure == nil {
		d.failure = decision.Failure
	}
	if decision.Outcome == Deny && decision.By != "" {
		if d.refusals == nil {
			d.refusals = map[string]*Refusal{}
		}
		d.refusals[verb] = &Refusal{Verb: verb, By: decision.By, Reason: decision.Reason}
	}
	if d.out.Checks == nil {
		d.out.Checks = make([]Check, 0, 6) // as many as an ordinary review needs
	}
	d.out.Checks = append(d.out.Checks, Check{verb, allowed, decision.By, decision.Skipped})
	return allowed
}

func (d *decider) decide(ctx context.Context) error {
	requirements := d.review.Requirements
	d.out.CoveredBy = make([]string, len(requirements))
	generic, err := d.enter(ctx)
	if err != nil || d.out.Denial != nil {
		return err
	}
	barredOnly := d.review.UncoveredOnly
	if generic != "" {
		barredOnly = true
		for i := range requirements {
			if !requirements[i].Barred() {
				d.out.CoveredBy[i] = generic
			}
		}
	}
	p := newPlan(requirements, barredOnly)
	if d.out.Mode == ModeGeneric && len(p.groups) > 0 {
		d.out.Mode = ModeUncovered
	}
	return d.cover(ctx, &p)
}

// enter asks for the generic permission, then for the marker. It returns the generic verb that the user holds, "" if none.
func (d *decider) enter(ctx context.Context) (string, error) {
	if d.review.UncoveredOnly {
		d.out.Mode = ModeUncovered
		return "", nil
	}
	for _, verb := range d.review.Generic {
		if d.exhausted() {
			break
		}
		decision, err := d.authorizer.Authorize(ctx, verb, true)
		if err != nil {
			return "", err
		}
		if d.record(verb, true, decision) {
			d.out.Mode = ModeGeneric
			return verb, nil
		}
	}
	d.out.Mode = ModeNone
	if !d.exhausted() && !d.review.GenericOnly {
		decision, err := d.authorizer.Authorize(ctx, verbs.Marker, false)
		if err != nil {
			return "", err
		}
		if d.record(verbs.Marker, false, decision) {
			d.out.Mode = ModeGranular
			return "", nil
		}
	}
	d.out.Denial = &Denial{
		Generic: d.review.Generic, GenericOnly: d.review.GenericOnly, More: len(d.review.Requirements), Refusal: d.refusals[verbs.Marker],
	}
	return "", nil
}

func (d *decider) exhausted() bool { return len(d.out.Checks) >= d.limits.MaxChecks }

// cover works through the plan. It sets Allowed only when it reaches the end.
func (d *decider) cover(ctx context.Context, p *plan) error {
	for p.blocked() == nil {
		// An authorizer that answers from a cache may not check the context, so it is checked here.
		if err := ctx.Err(); err != nil {
			return err
		}
		left := d.limits.MaxChecks - len(d.out.Checks)
		batch := p.next(max(min(d.limits.Parallel, left), 1))
		if len(batch) == 0 {
			break
		}
		if left <= 0 {
			d.denyForCost(p)
			break
		}
		if err := d.ask(ctx, p, batch); err != nil {
			return err
		}
	}
	if g := p.blocked(); g != nil {
		d.deny(p, g)
	}
	d.credit(p)
	d.out.Allowed = p.remaining() == 0
	return nil
}

// ask asks for verbs of one level. It takes the answers in a fixed order, so the outcome does not depend on which answer arrives first.
func (d *decider) ask(ctx context.Context, p *plan, batch []candidate) error {
	if len(batch) > 1 {
		return d.askTogether(ctx, p, batch)
	}
	decision, err := d.authorizer.Authorize(ctx, batch[0].verb.String(), false)
	if err != nil {
		return err
	}
	d.take(p, batch[0].verb, decision)
	return nil
}

// askTogether asks for all verbs of the batch in parallel. Once an answer leaves a group without a verb, the checks that are still
// running are cancelled. Their answers and errors do not count.
func (d *decider) askTogether(ctx context.Context, p *plan, batch []candidate) error {
	ctx, cancel := context.WithCancel(ctx)
	running := make([]runningCheck, len(batch))
	defer func() {
		for i := range running {
			running[i].done.Wait()
		}
	}()
	defer cancel()
	authorizer := d.authorizer // A goroutine that used d would move d to the heap in every review.
	for i := range running {
		c := &running[i]
		c.verb = batch[i].verb.String()
		if i > 0 {
			c.done.Go(func() { c.run(ctx, authorizer) })
		}
	}
	running[0].run(ctx, authorizer)
	for i := range running {
		c := &running[i]
		c.done.Wait()
		if c.err != nil {
			return c.err
		}
		d.take(p, batch[i].verb, c.decision)
		if p.blocked() != nil {
			return nil
		}
	}
	return nil
}

// runningCheck is a check that one goroutine makes.
type runningCheck struct {
	verb     string
	done     sync.WaitGroup
	decision AuthorizerDecision
	err      error
}

func (c *runningCheck) run(ctx context.Context, authorizer Authorizer) {
	c.decision, c.err = authorizer.Authorize(ctx, c.verb, false)
}

func (d *decider) take(p *plan, v verbs.Verb, decision AuthorizerDecision) {
	p.record(v, d.record(v.String(), false, decision))
}

// deny denies a review because of a group that has no verb left.
func (d *decider) deny(p *plan, blocked *group) {
	r := &d.review.Requirements[blocked.from]
	needs := slices.Clone(r.Candidates())
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

// denyForCost denies a review that would need too many checks (P3). The denial names the verb that would have been enough.
func (d *decider) denyForCost(p *plan) {
	g, verb := p.cheapest()
	d.out.Denial = &Denial{
		Requirement: &d.review.Requirements[g.from], Needs: []verbs.Verb{verb}, More: p.remaining() - 1, Checks: d.limits.MaxChecks,
	}
}

// credit records the verb that covers each requirement, also when the review ends in a denial.
func (d *decider) credit(p *plan) {
	for i := range p.groups {
		for j := p.groups[i].from; j < p.groups[i].to; j++ {
			d.out.CoveredBy[j] = p.groups[i].covered.String()
		}
	}
}
