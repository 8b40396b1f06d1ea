package fieldperm

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

// The reference is deliberately dumb: it asks for one verb after the other, and for each question it looks at all requirements again. It has
// no groups, keeps no position in a chain and counts nothing. Of Limits.Parallel it knows only which verbs are asked for at once, so that the
// answer to one cannot make another needless.

// decideByReference is Decide.
func decideByReference(ctx context.Context, authorizer Authorizer, review Review, limits Limits) (Decision, error) {
	d := &reference{ctx: ctx, authorizer: authorizer, review: review, max: limits.MaxChecks, parallel: max(limits.Parallel, 1), refusals: map[string]*Refusal{}, answered: map[verbs.Verb]bool{}}
	if d.max <= 0 {
		d.max = DefaultMaxChecks
	}
	d.out.CoveredBy = make([]string, len(review.Requirements))
	d.decide()
	switch {
	case d.err != nil:
		return Decision{}, d.err
	case d.out.Denial != nil && d.failure != nil:
		return Decision{}, d.failure
	}
	d.out.Allowed = d.out.Denial == nil
	return d.out, nil
}

type reference struct {
	ctx           context.Context //nolint:containedctx // It lives as long as the call.
	authorizer    Authorizer
	review        Review
	max, parallel int
	out           Decision
	err, failure  error
	refusals      map[string]*Refusal
	answered      map[verbs.Verb]bool
}

// holds asks for one verb.
func (d *reference) holds(verb string, generic bool) bool {
	answer, err := d.authorizer.Authorize(d.ctx, verb, generic)
	if err != nil {
		d.err = err
		return false
	}
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

func (d *reference) exhausted() bool { return len(d.out.Checks) >= d.max }

func (d *reference) decide() {
	generic := d.enter()
	if d.err != nil || d.out.Denial != nil {
		return
	}
	var open []int
	for i, r := range d.review.Requirements {
		switch {
		case r.Barred():
			open = append(open, i)
		case generic != "":
			d.out.CoveredBy[i] = generic
		case !d.review.UncoveredOnly:
			open = append(open, i)
		}
	}
	if len(open) > 0 && d.out.Mode == ModeGeneric {
		d.out.Mode = ModeUncovered
	}
	d.cover(open)
}

func (d *reference) enter() (generic string) {
	if d.review.UncoveredOnly {
		d.out.Mode = ModeUncovered
		return ""
	}
	for _, verb := range d.review.Generic {
		if d.exhausted() {
			break
		}
		if held := d.holds(verb, true); held || d.err != nil {
			d.out.Mode = ModeGeneric
			return verb
		}
	}
	d.out.Mode = ModeNone
	if !d.exhausted() && d.holds(verbs.Marker, false) {
		d.out.Mode = ModeGranular
	} else {
		d.out.Denial = &Denial{Generic: d.review.Generic, More: len(d.review.Requirements), Refusal: d.refusals[verbs.Marker]}
	}
	return ""
}

// verbsAt returns the verbs of a requirement that count and are at a level, with the number of verbs after each. The level counts the steps
// from general to specific. A verb with a parameter is at the level of the next verb without one.
func verbsAt(r *Requirement, level int) map[verbs.Verb]int {
	out, at := map[verbs.Verb]int{}, 0
	for i, v := range r.Chain {
		if i > 0 && (v.HasParameter() || !r.Chain[i-1].HasParameter()) {
			at++
		}
		if i >= r.Barrier && at == level {
			out[v] = len(r.Chain) - 1 - i
		}
	}
	return out
}

// order returns the verbs of a level that have no answer: first what covers most of the open requirements (P2).
func (d *reference) order(open []int, level int) []verbs.Verb {
	members, after := map[verbs.Verb]int{}, map[verbs.Verb]int{}
	var out []verbs.Verb
	for _, i := range open {
		for v, n := range verbsAt(&d.review.Requirements[i], level) {
			if members[v]++; members[v] == 1 {
				after[v] = n
				out = append(out, v)
			}
			after[v] = min(after[v], n)
		}
	}
	out = slices.DeleteFunc(out, func(v verbs.Verb) bool { return d.answered[v] })
	slices.SortFunc(out, func(a, b verbs.Verb) int {
		return cmp.Or(cmp.Compare(members[b], members[a]), cmp.Compare(after[a], after[b]), strings.Compare(a.String(), b.String()))
	})
	return out
}

// cover asks for the verbs of each level (P1), until a requirement has no verb left or the limit is reached (P3).
func (d *reference) cover(open []int) {
	requirements, deepest := d.review.Requirements, 0
	for _, i := range open {
		deepest = max(deepest, len(requirements[i].Chain))
	}
	done := d.denied(open)
	for level := 0; level <= deepest && !done; level++ {
		waits := func(v verbs.Verb) bool {
			return slices.ContainsFunc(open, func(i int) bool { _, has := verbsAt(&requirements[i], level)[v]; return has })
		}
		for order := d.order(open, level); len(order) > 0 && !done; {
			n := 0
			for n < min(len(order), d.parallel, max(d.max-len(d.out.Checks), 1)) && waits(order[n]) && order[n].HasParameter() == order[0].HasParameter() {
				n++
			}
			for _, v := range order[:n] {
				if open, done = d.ask(v, open); done {
					break
				}
			}
			order = order[max(n, 1):]
		}
	}
}

// ask asks for one verb. It returns the requirements that are still open, and whether the review ends.
func (d *reference) ask(v verbs.Verb, open []int) ([]int, bool) {
	if d.exhausted() {
		d.denyForCost(open)
		return open, true
	}
	held := d.holds(v.String(), false)
	d.answered[v] = true
	open = slices.DeleteFunc(open, func(i int) bool {
		covers := held && slices.Contains(d.review.Requirements[i].Candidates(), v)
		if covers {
			d.out.CoveredBy[i] = v.String()
		}
		return covers
	})
	return open, d.err != nil || d.denied(open)
}

// denied denies the first requirement of which all verbs have an answer.
func (d *reference) denied(open []int) bool {
	for _, i := range open {
		r := &d.review.Requirements[i]
		if slices.ContainsFunc(r.Candidates(), func(v verbs.Verb) bool { return !d.answered[v] }) {
			continue
		}
		needs := slices.Clone(r.Candidates())
		slices.Reverse(needs)
		d.out.Denial = &Denial{Requirement: r, Needs: needs, More: len(open) - 1}
		if first := slices.IndexFunc(needs, func(v verbs.Verb) bool { return d.refusals[v.String()] != nil }); first >= 0 {
			d.out.Denial.Refusal = d.refusals[needs[first].String()]
		}
		if !r.Barred() {
			d.out.Denial.Generic = d.review.Generic
		}
		return true
	}
	return false
}

func (d *reference) denyForCost(open []int) {
	first := &d.review.Requirements[open[0]]
	verb := first.Candidates()[0]
	for _, v := range first.Candidates() {
		if !slices.ContainsFunc(open, func(i int) bool { return !slices.Contains(d.review.Requirements[i].Candidates(), v) }) {
			verb = v
		}
	}
	d.out.Denial = &Denial{Requirement: first, Needs: []verbs.Verb{verb}, More: len(open) - 1, Checks: d.max}
}
