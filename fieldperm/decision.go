package fieldperm

import (
	"context"
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

// Authorizer answers whether the user of a request may do something to its object. Who asks and
// about what is closed over. It must be safe for concurrent use.
type Authorizer interface {
	// Authorize asks for a verb. generic says that it is asked as the generic permission: whoever
	// carries the question to an authorizer chain must then keep fieldperm's own authorizer from
	// answering it (A4). An error is no denial.
	Authorize(ctx context.Context, verb string, generic bool) (Answer, error)
}

// Answer is an authorizer's; the zero Answer denies.
type Answer struct {
	Allowed bool
	// Reason is the deciding authorizer's, verbatim.
	Reason string
	// By is the name of the authorizer that decided, "" if none had an opinion.
	By string
	// Failure is why the answer might be another one: an authorizer failed whose policy is to be passed
	// over, and no other allowed it. Whoever is denied for it gets the error instead (P4).
	Failure error
}

// AllowsGeneric reports whether the answer to a generic verb is the generic permission. An Allow of
// fieldperm's own authorizer is not: it stands on what is decided by granular verbs (A4, the second lock).
func (a Answer) AllowsGeneric() bool {
	return a.Allowed && !strings.HasPrefix(a.Reason, verbs.Prefix)
}

// Review is what has to be decided.
type Review struct {
	// Generic are the verbs any one of which is the generic permission: update and patch, or create.
	Generic []string
	// Requirements are Diff's.
	Requirements []Requirement
	// UncoveredOnly looks at barriers alone and asks neither for the generic permission nor for the
	// marker: for requests whose generic permission the API server has checked.
	UncoveredOnly bool
}

// DefaultMaxChecks is how many checks one request may cost unless Limits say otherwise (P3).
const DefaultMaxChecks = 32

// Limits bound the cost of one decision.
type Limits struct {
	// MaxChecks is how many verbs may be asked; 0 means DefaultMaxChecks.
	MaxChecks int
	// Parallel is how many verbs of one level may be asked at the same time; 0 means one.
	Parallel int
}

// Mode is what let a request in.
type Mode string

// The modes.
const (
	// ModeNone: neither the generic permission nor the marker is held.
	ModeNone Mode = "none"
	// ModeGeneric: the generic permission covers every change.
	ModeGeneric Mode = "generic"
	// ModeGranular: the marker is held, granular verbs cover the changes.
	ModeGranular Mode = "granular"
	// ModeUncovered: barriers are involved for which the generic permission does not count.
	ModeUncovered Mode = "uncovered"
)

// Check is a verb that was asked.
type Check struct {
	Verb    string
	Allowed bool
	// By is the authorizer that decided, "" if none had an opinion that counts.
	By string
}

// Decision is the outcome of a review. The zero Decision denies.
type Decision struct {
	Allowed bool
	Mode    Mode
	// Checks are in the order asked.
	Checks []Check
	// CoveredBy names, for each requirement, the verb that covered it; "" where none did or none
	// was looked for.
	CoveredBy []string
	// Denial says why not; nil exactly if Allowed.
	Denial *Denial
}

// Denial says what is lacking. It names the first change that is not covered and no other (P5).
type Denial struct {
	// Requirement is that change; nil if the user holds neither the generic permission nor the
	// marker, or Unexplained.
	Requirement *Requirement
	// Needs are the verbs any one of which would do, from specific to general.
	Needs []verbs.Verb
	// Generic are the verbs of the generic permission, each of which would do as well where the
	// change has no barrier.
	Generic []string
	// More is how many further changes were not covered and not looked at.
	More int
	// Unattributed says that no manager owns the change, so that it is not the request's own (D12).
	// Decide does not set it; see the function of that name.
	Unattributed bool
	// Checks is the limit of checks if that ended the review (P3), else 0; Needs then holds the one
	// verb that would have made do.
	Checks int
	// Refusal is of an authorizer that denies a verb that would do, the most specific one of them; nil if
	// none had that opinion.
	Refusal *Refusal
}

// Refusal is an authorizer's Deny, which no grant elsewhere makes up for.
type Refusal struct {
	Verb, By, Reason string
}
