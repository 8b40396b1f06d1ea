package anyvalue

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// Certainty says whether something is so for every value. The zero Certainty is Never.
type Certainty int

// These are the certainties.
const (
	// Never: it is so for no value.
	Never Certainty = iota
	// Perhaps: it is so for some values, or it is not known.
	Perhaps
	// Always: it is so for every value.
	Always
)

// Condition is a condition of a ConditionalPolicy, as far as it is known without the object.
type Condition struct {
	Policy string
	// Effect is Allow, Deny or NoOpinion.
	Effect string
	// Text is "true", "false" or what is left of the condition. It is "" with an Err.
	Text string
	// Err is why the condition cannot be evaluated: it is then false for Allow, and true for the others (K4).
	Err error
}

// certainty returns whether the condition is true.
func (c *Condition) certainty() Certainty {
	switch {
	case c.Err != nil && c.Effect == effectAllow, c.Err == nil && c.Text == "false":
		return Never
	case c.Err != nil, c.Text == "true":
		return Always
	}
	return Perhaps
}

func (c *Condition) String() string {
	return fmt.Sprintf("ConditionalPolicy %s (%s) if %s", c.Policy, c.Effect, c.Text)
}

const (
	effectAllow     = "Allow"
	effectDeny      = "Deny"
	effectNoOpinion = "NoOpinion"
)

// Holding says whether the user holds a verb. The zero Holding is of a user that does not.
type Holding struct {
	Certainty
	// Denied says whether an authorizer or a policy denies the verb.
	Denied Certainty
	// By is the policy that denies it for certain.
	By string
	// Conditions are what the answer depends on.
	Conditions []string
}

// Holdings are the verbs that the user holds on an object. Each verb is asked for once.
type Holdings struct {
	// Authorizer is the chain of authorizers.
	Authorizer fieldperm.Authorizer
	// Conditions returns the conditions of policies about a verb. nil means that there are none.
	Conditions func(ctx context.Context, verb string) []Condition
	// Asked is called after each verb; it may be nil.
	Asked func(verb string)

	known map[asked]Holding
	// failure is the first failure of an authorizer that was skipped.
	failure error
}

type asked struct {
	verb    string
	generic bool
}

// Failure returns why an answer other than yes is not certain: an authorizer failed, and may have allowed a verb (P4).
func (h *Holdings) Failure() error { return h.failure }

// Verb returns whether the user holds a verb. generic is true for a verb as the generic permission. An error is not a denial.
func (h *Holdings) Verb(ctx context.Context, verb string, generic bool) (Holding, error) {
	key := asked{verb, generic}
	if have, isKnown := h.known[key]; isKnown {
		return have, nil
	}
	out, err := h.decide(ctx, verb, generic)
	if err != nil {
		return Holding{}, err
	}
	if h.known == nil {
		h.known = map[asked]Holding{}
	}
	h.known[key] = out
	return out, nil
}

// decide asks the policies, and after them the chain (K5).
func (h *Holdings) decide(ctx context.Context, verb string, generic bool) (Holding, error) {
	var of opinions
	if h.Conditions != nil {
		of = opinionsOf(h.Conditions(ctx, verb))
	}
	if of.deny == Always {
		return Holding{Denied: Always, By: of.denies}, nil
	}
	// An Allow counts if no NoOpinion is true.
	allow := of.allow
	if of.noOpinion == Always {
		allow = Never
	} else if of.noOpinion == Perhaps {
		allow = min(allow, Perhaps)
	}
	held := allow
	if held != Always {
		if err := ctx.Err(); err != nil {
			return Holding{}, err
		}
		answer, err := h.Authorizer.Authorize(ctx, verb, generic)
		if err != nil {
			return Holding{}, err
		}
		if h.Asked != nil {
			h.Asked(verb)
		}
		allowed := answer.Allowed()
		if generic {
			allowed = answer.AllowsGeneric()
		}
		if allowed {
			held = Always
		} else {
			h.failure = cmp.Or(h.failure, answer.Failure)
		}
	}
	out := Holding{Certainty: held, Denied: of.deny}
	if of.deny == Perhaps {
		out.Certainty = min(held, Perhaps)
	}
	if out.Certainty == Perhaps || out.Denied == Perhaps {
		out.Conditions = of.texts
	}
	return out, nil
}

// opinions are what policies say about a verb.
type opinions struct {
	allow, deny, noOpinion Certainty
	// denies is a policy that denies for certain.
	denies string
	// texts are the conditions that are not known.
	texts []string
}

func opinionsOf(conditions []Condition) opinions {
	var out opinions
	for i := range conditions {
		c := &conditions[i]
		is := c.certainty()
		if is == Perhaps {
			out.texts = append(out.texts, c.String())
		}
		switch c.Effect {
		case effectAllow:
			out.allow = max(out.allow, is)
		case effectDeny:
			if is == Always {
				out.denies = c.Policy
			}
			out.deny = max(out.deny, is)
		case effectNoOpinion:
			out.noOpinion = max(out.noOpinion, is)
		}
	}
	return out
}
