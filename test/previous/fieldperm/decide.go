package fieldperm

import (
	"context"
	"slices"
	"sync"

	"github.com/fieldperm/fieldperm/test/previous/verbs"
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
		d.out.Checks = make([]Check, 0, d.expected())
	}
	d.out.Checks = append(d.out.Checks, Check{verb, allowed, decision.By, decision.Skipped})
	return allowed
}

// expected returns the number of checks of a typical review: one change, or one more verb for each further change.
func (d *decider) expected() int {
	n := len(d.review.Generic) + 1
	if rs := d.review.Requirements; len(rs) > 0 {
		n += len(rs[0].Candidates()) + len(rs) - 1
	}
	return min(n, d.limits.MaxChecks)
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
	chain, members := sharedVerbs(requirements, barredOnly)
	if members == 0 {
		d.out.Allowed = ctx.Err() == nil
		return ctx.Err()
	}
	if d.out.Mode == ModeGeneric {
		d.out.Mode = ModeUncovered
	}
	asked, err := d.askShared(ctx, chain, barredOnly)
	if err != nil || d.out.Allowed {
		return err
	}
	return d.coverByPlan(ctx, barredOnly, asked)
}

// askShared asks for verbs of which each covers every change. Once the user holds one, no plan is needed. It returns the number of verbs
// that the user does not hold.
func (d *decider) askShared(ctx context.Context, chain []verbs.Verb, barredOnly bool) (int, error) {
	for i, v := range chain {
		// An authorizer that answers from a cache may not check the context, so it is checked here.
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if d.exhausted() {
			return i, nil
		}
		decision, err := d.authorizer.Authorize(ctx, v.String(), false)
		if err != nil {
			return i, err
		}
		if !d.record(v.String(), false, decision) {
			continue
		}
		for j := range d.out.CoveredBy {
			if !barredOnly || d.review.Requirements[j].Barred() {
				d.out.CoveredBy[j] = v.String()
			}
		}
		d.out.Allowed = true
		return i, nil
	}
	return len(chain), nil
}

// coverByPlan makes a plan for the changes and works through it. asked is the number of shared verbs that the user does not hold.
func (d *decider) coverByPlan(ctx context.Context, barredOnly bool, asked int) error {
	var scratch planScratch
	p := scratch.plan(d.review.Requirements, barredOnly)
	for i := range asked {
		p.record(p.uses[i].verb, false) // Every chain begins with these verbs, and so does the first.
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
	var few [8]verbID
	for p.blocked == none {
		// An authorizer that answers from a cache may not check the context, so it is checked here.
		if err := ctx.Err(); err != nil {
			return err
		}
		left := d.limits.MaxChecks - len(d.out.Checks)
		batch := p.next(few[:0], max(min(d.limits.Parallel, left), 1))
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
	if p.blocked != none {
		d.deny(p)
	}
	d.credit(p)
	d.out.Allowed = p.remaining == 0
	return nil
}

// ask asks for verbs of one level. It takes the answers in a fixed order, so the outcome does not depend on which answer arrives first.
func (d *decider) ask(ctx context.Context, p *plan, batch []verbID) error {
	if len(batch) > 1 {
		return d.askTogether(ctx, p, batch)
	}
	decision, err := d.authorizer.Authorize(ctx, p.verbs[batch[0]].text, false)
	if err != nil {
		return err
	}
	d.take(p, batch[0], decision)
	return nil
}

// askTogether asks for all verbs of the batch in parallel. Once an answer leaves a group without a verb, the checks that are still
// running are cancelled. Their answers and errors do not count.
func (d *decider) askTogether(ctx context.Context, p *plan, batch []verbID) error {
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
		c.verb = p.verbs[batch[i]].text
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
		d.take(p, batch[i], c.decision)
		if p.blocked != none {
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

func (d *decider) take(p *plan, v verbID, decision AuthorizerDecision) {
	p.record(v, d.record(p.verbs[v].text, false, decision))
}

func (d *decider) deny(p *plan) {
	r := &d.review.Requirements[p.groups[p.blocked].from]
	needs := slices.Clone(r.Candidates())
	slices.Reverse(needs)
	d.out.Denial = &Denial{Requirement: r, Needs: needs, More: p.remaining - 1}
	for _, v := range needs {
		if d.out.Denial.Refusal = d.refusals[v.String()]; d.out.Denial.Refusal != nil {
			break
		}
	}
	if !r.Barred() {
		d.out.Denial.Generic = d.review.Generic
	}
}

// denyForCost denies a review that would need too many checks (P3). The denial names the most specific verb that covers all remaining
// changes. If no such verb exists, it names the most general verb of the first remaining change.
func (d *decider) denyForCost(p *plan) {
	r := &d.review.Requirements[p.firstUncovered().from]
	i := max(p.common(), 0)
	d.out.Denial = &Denial{Requirement: r, Needs: r.Candidates()[i : i+1 : i+1], More: p.remaining - 1, Checks: d.limits.MaxChecks}
}

// credit records the verb that covers each requirement, also when the review ends in a denial.
func (d *decider) credit(p *plan) {
	for i := range p.groups {
		g := &p.groups[i]
		if !g.isCovered() {
			continue
		}
		for j := g.from; j < g.to; j++ {
			d.out.CoveredBy[j] = p.verbs[g.covered].text
		}
	}
}
