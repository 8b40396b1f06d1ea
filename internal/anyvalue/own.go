package anyvalue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
)

// Outcome is the answer in one word. The zero Outcome is No.
type Outcome int

// These are the outcomes.
const (
	No Outcome = iota
	Depends
	Yes
)

func (o Outcome) String() string { return [...]string{"no", "depends", "yes"}[o] }

// Answer is the answer about one field. The zero Answer is no.
type Answer struct {
	Outcome Outcome
	// By is the verb that covers the field, if the answer is yes.
	By string
	// Why says what the answer depends on, or why it is no, if a verb that is missing is not all.
	Why []string
	// Needs are the verbs that would cover the field, from specific to general, if the answer is no.
	Needs []string
	// Entry are the verbs of which the user needs one to get to admission at all; none if it gets there.
	Entry []string
	// Barred means that a barrier is at the field: Needs count in addition to Entry.
	Barred bool
	// NotEnforced means that the user holds the marker, and that it lets nobody in: fieldperm is not installed, or enforcement is not proven.
	NotEnforced bool
}

// own decides on a place without the fields below it. Inside of an atomic value the verbs of the place are not enough: the whole is charged, and a
// barrier inside in addition (D4).
func (j *Judge) own(ctx context.Context, p *fieldtree.Place) (Answer, error) {
	out, err := j.alone(ctx, p)
	whole := p.Whole()
	if err != nil || whole == nil || j.entered.Certainty == Never {
		return out, err
	}
	of, err := j.alone(ctx, whole)
	if err == nil && of.Outcome <= out.Outcome {
		return of, nil
	}
	return out, err
}

// alone decides on a place by its own chains.
func (j *Judge) alone(ctx context.Context, p *fieldtree.Place) (Answer, error) {
	e, err := j.enter(ctx)
	if err != nil {
		return Answer{}, err
	}
	chains := p.Chains()
	if e.Certainty == Never {
		out := e.answer
		if out.Barred = isBarred(chains[0]); out.Barred || e.generic.Certainty == Never {
			out.Needs = needsOf(chains[0], j.TakesMarker)
		}
		return out, nil
	}
	all, some := Always, Never
	isMust := false
	out := Answer{}
	for _, links := range chains {
		c, err := j.chain(ctx, p, links)
		if err != nil {
			return Answer{}, err
		}
		all, some = min(all, c.best), max(some, c.best)
		// A change needs a verb of each chain whose barrier holds.
		isMust = isMust || c.best == Never && isBarred(links)
		out.Why = append(out.Why, c.why...)
		if c.by != "" && out.By == "" {
			out.By = c.by
		}
		if c.best != Always && out.Needs == nil {
			out.Needs = needsOf(links, j.TakesMarker)
		}
	}
	switch {
	case all == Always:
		out = Answer{Outcome: Yes, By: out.By}
	case isMust || some == Never:
		return Answer{Needs: out.Needs, Barred: isMust}, nil
	default:
		out = Answer{Outcome: Depends, Why: out.Why}
	}
	return j.cap(out, p), nil
}

// cap turns a yes into depends, where something other than the chain of the field may refuse the change.
func (j *Judge) cap(out Answer, p *fieldtree.Place) Answer {
	var why []string
	why = append(why, j.entered.denied...)
	if j.entered.Certainty == Perhaps {
		why = append(why, slices.Concat(j.entered.marker.Conditions, j.entered.generic.Conditions)...)
	}
	if out.Outcome == Yes && p.Kind.Lossy && !slices.Contains(genericVerbs, out.By) && out.By != rootVerb {
		why = append(why, "a write through this version may change fields that it does not show")
	}
	if out.Outcome == Yes && p.Kind.Instead != "" {
		why = append(why, "this version may hide fields behind barriers: "+p.Kind.Instead)
	}
	if len(why) == 0 {
		out.Why = unique(out.Why)
		return out
	}
	return Answer{Outcome: Depends, Why: unique(append(out.Why, why...))}
}

const rootVerb = "granular:*"

// covered is the result of one chain.
type covered struct {
	best Certainty
	by   string
	why  []string
}

// chain asks for the verbs of a chain from general to specific, until one covers the field for certain.
func (j *Judge) chain(ctx context.Context, p *fieldtree.Place, links []fieldtree.Link) (covered, error) {
	out := covered{}
	for i := range links {
		l := &links[i]
		counts, lost := j.counts(p, links, i)
		if counts == Never {
			continue
		}
		held, err := j.holds(ctx, l)
		if err != nil {
			return covered{}, err
		}
		is := min(held.Certainty, counts)
		if is == Always {
			by := l.Verb
			if by == "" {
				by = j.entered.by
			}
			return covered{best: Always, by: by}, nil
		}
		if is == Perhaps {
			out.best = Perhaps
			out.why = append(out.why, held.Conditions...)
			out.why = append(out.why, lost...)
		}
	}
	return out, nil
}

// holds returns whether the user holds the verb of a link, so that it counts.
func (j *Judge) holds(ctx context.Context, l *fieldtree.Link) (Holding, error) {
	e := j.entered
	if l.Of == nil {
		return e.generic, nil
	}
	access := e.granularAccess(j.TakesMarker)
	if access == Never {
		return Holding{}, nil
	}
	var out Holding
	if l.Unbound {
		// The verb has the name of its parameter in place of a value.
		out = Holding{Certainty: Perhaps, Conditions: []string{fmt.Sprintf("%s, for the %s of the value, covers it if the user holds that verb", l.Verb, l.Of.Parameter)}}
	} else {
		var err error
		if out, err = j.Holdings.Verb(ctx, l.Verb, false); err != nil {
			return Holding{}, err
		}
	}
	if out.Certainty > access {
		out.Certainty = access
		out.Conditions = append(slices.Clone(out.Conditions), slices.Concat(e.generic.Conditions, e.marker.Conditions)...)
	}
	return out, nil
}

// counts returns whether a link covers the place, and the reasons why it may not.
func (j *Judge) counts(p *fieldtree.Place, links []fieldtree.Link, at int) (Certainty, []string) {
	l := &links[at]
	out := Always
	var why []string
	for _, loss := range l.Lost {
		switch {
		case !j.OnFloor && len(loss.When) == 0 && loss.One == "":
			return Never, nil
		case loss.Set == "" && len(loss.When) == 0 && loss.One == "":
			why = append(why, loss.By+" is a barrier unless the write is on the floor")
		default:
			why = append(why, barrierText(&loss, j.OnFloor))
		}
		out = Perhaps
	}
	for _, below := range links[at+1:] {
		for _, s := range j.Elsewhere {
			if below.Of != nil && below.Of != l.Of && isOn(s, below.Of) {
				out = Perhaps
				why = append(why, ownersText(s))
			}
		}
	}
	return out, why
}

// barrierText says when a barrier takes the field out of the verbs above.
func barrierText(l *fieldtree.Loss, onFloor bool) string {
	text := l.By + " is a barrier"
	if l.Set != "" {
		text = setName(l.Set) + " makes " + l.By + " a barrier"
	}
	joined := " or "
	if l.Set != "" {
		joined = " and "
	}
	if len(l.When) > 0 {
		text += " if " + strings.Join(l.When, joined)
	}
	if l.One != "" {
		text += " for " + l.One
	}
	if onFloor {
		text += ", unless the write is on the floor"
	}
	return text
}

// setName returns the name of a set by its source, which is a file or an object.
func setName(source string) string {
	const kind = "UncoveredPermissionSet"
	if strings.HasPrefix(source, kind) {
		return source
	}
	return kind + " in " + source
}

// isBarred reports whether a chain has a barrier that always holds.
func isBarred(links []fieldtree.Link) bool {
	return slices.ContainsFunc(links[0].Lost, func(l fieldtree.Loss) bool { return len(l.When) == 0 && l.One == "" })
}

// needsOf returns the verbs that cover a place, from specific to general. granular means that granular verbs count, if no barrier is at the place.
func needsOf(links []fieldtree.Link, granular bool) []string {
	var out []string
	for _, l := range slices.Backward(links) {
		switch {
		case !l.Counts():
		case l.Of == nil:
			out = append(out, genericVerbs...)
		case granular || isBarred(links):
			out = append(out, l.Verb)
		}
	}
	return out
}

func unique(texts []string) []string {
	var out []string
	for _, text := range texts {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
