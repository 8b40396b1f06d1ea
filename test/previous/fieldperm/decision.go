package fieldperm

import (
	"context"
	"strings"

	"github.com/fieldperm/fieldperm/test/previous/verbs"
)

// Authorizer decides whether the user of one request holds a verb on the object of that request. The implementation already knows the
// user and the object. It must be safe for concurrent use.
type Authorizer interface {
	// Authorize decides on one verb. generic is true for a check of the generic permission. An implementation that asks an authorizer
	// chain must then prevent fieldperm's own authorizer from answering (A4). An error means that the check failed; it is not a denial,
	// and the decision beside it does not count.
	Authorize(ctx context.Context, verb string, generic bool) (AuthorizerDecision, error)
}

// AuthorizerDecision is the decision of an authorizer on one verb. The zero AuthorizerDecision denies.
type AuthorizerDecision struct {
	Outcome Outcome
	// Reason is the text of the authorizer that decided, unchanged.
	Reason string
	// By is the name of the authorizer that decided, "" if no authorizer had an opinion.
	By string
	// Skipped are the names of the webhooks that were not asked because a match condition of theirs excludes the question, separated by
	// commas. It is for audit only.
	Skipped string
	// Failure is set when an authorizer failed, its failure policy is NoOpinion, and no other authorizer allowed the verb. A working
	// authorizer might have allowed it. A user that would be denied for this reason gets the error instead (P4).
	Failure error
}

// Unmet is a condition that is not true for the objects of the request.
type Unmet struct {
	// Name is the name of the policy that has the condition, or the condition's ID if another authorizer has it.
	Name string
	// Authorizer is the name of that authorizer. It is empty for a policy.
	Authorizer string
	// Description says in words what the condition is. It may be empty.
	Description string
}

// Outcome says whether an authorizer allows a verb. The zero Outcome denies. The values are those of authorizer.Decision in
// k8s.io/apiserver, so that a decision of one converts into the other.
type Outcome int

// These are the outcomes. Only Allow grants the verb.
const (
	// Deny: an authorizer denies the verb. A grant in another authorizer cannot override it.
	Deny Outcome = iota
	// Allow: an authorizer allows the verb.
	Allow
	// NoOpinion: no authorizer allows or denies the verb.
	NoOpinion
)

// OutcomeOf returns Allow, or NoOpinion. It is for authorizers that never deny, as RBAC.
func OutcomeOf(allowed bool) Outcome {
	if allowed {
		return Allow
	}
	return NoOpinion
}

// Allowed reports whether the decision grants the verb.
func (d AuthorizerDecision) Allowed() bool { return d.Outcome == Allow }

// AllowsGeneric reports whether the decision on a generic verb grants the generic permission. An Allow of fieldperm's own authorizer does
// not, because it depends on the later check of granular verbs (A4, the second lock).
func (d AuthorizerDecision) AllowsGeneric() bool {
	return d.Allowed() && !strings.HasPrefix(d.Reason, verbs.Prefix)
}

// Review is the input of one decision.
type Review struct {
	// Generic are the generic verbs: update and patch, or create. Any one of them is the generic permission.
	Generic []string
	// Requirements are the result of Diff.
	Requirements []Requirement
	// UncoveredOnly limits the review to barriers. Decide then asks neither for the generic permission nor for the marker. It is for
	// requests whose generic permission the API server has already checked.
	UncoveredOnly bool
	// GenericOnly means that granular verbs cover no change of the request: Decide does not ask for the marker. Barriers need their verbs all the
	// same.
	GenericOnly bool
}

// DefaultMaxChecks is the maximum number of checks of one request if Limits.MaxChecks is 0 (P3).
const DefaultMaxChecks = 32

// Limits limit the cost of one decision.
type Limits struct {
	// MaxChecks is the maximum number of verbs that one decision asks for; 0 means DefaultMaxChecks.
	MaxChecks int
	// Parallel is the maximum number of verbs of one level that are asked for in parallel; 0 means one.
	Parallel int
}

// Mode says which permission admitted the request to the review.
type Mode string

// These are the modes.
const (
	// ModeNone: the user holds neither the generic permission nor the marker.
	ModeNone Mode = "none"
	// ModeGeneric: the user holds the generic permission, which covers every change without a barrier.
	ModeGeneric Mode = "generic"
	// ModeGranular: the user holds the marker, and granular verbs cover the changes.
	ModeGranular Mode = "granular"
	// ModeUncovered: changes are behind barriers, for which the generic permission does not count.
	ModeUncovered Mode = "uncovered"
)

// Check is one verb that Decide asked for, with the decision.
type Check struct {
	Verb    string
	Allowed bool
	// By is the name of the authorizer that decided, "" if no authorizer had an opinion that counts.
	By string
	// Skipped is that of the AuthorizerDecision.
	Skipped string
}

// Decision is the outcome of a review. The zero Decision denies.
type Decision struct {
	Allowed bool
	Mode    Mode
	// Checks are in the order in which the verbs were asked for.
	Checks []Check
	// CoveredBy has, for each requirement, the verb that covers it. It is "" where no verb covers the requirement or no verb was needed.
	CoveredBy []string
	// Denial is the reason of a denial. It is nil exactly if Allowed is true.
	Denial *Denial
}

// Denial says which permission is missing. It names only the first change that is not covered (P5).
type Denial struct {
	// Requirement is the first change that is not covered. It is nil if the user holds neither the generic permission nor the marker.
	Requirement *Requirement
	// Needs are the verbs that cover the change, from specific to general. Any one of them is enough.
	Needs []verbs.Verb
	// Generic are the verbs of the generic permission. If the change has no barrier, any one of them is enough too.
	Generic []string
	// GenericOnly is that of the Review.
	GenericOnly bool
	// More is the number of further changes that are not covered and were not checked.
	More int
	// Unattributed is true if no field manager owns the change, so the request itself did not make it (D12). Decide does not set it; see
	// the function Unattributed.
	Unattributed bool
	// Checks is the limit of checks if that limit ended the review (P3), else 0. Needs then holds the one verb that would have been
	// enough.
	Checks int
	// Refusal is the Deny of an authorizer for a verb in Needs (the most specific one that was denied) or for the marker. It is nil if no
	// authorizer denied one.
	Refusal *Refusal
	// Unmet are the conditions under which a verb that was asked for would have been allowed, each once. Decide does not set it.
	Unmet []Unmet
}

// IsRefusal reports whether an authorizer denied the verb of the request itself, so that nothing else that the user holds counts.
func (d *Denial) IsRefusal() bool {
	return d != nil && d.Requirement == nil && d.Refusal != nil && len(d.Generic) == 0
}

// Refusal is an explicit Deny of an authorizer. A grant in another authorizer cannot override it.
type Refusal struct {
	Verb, By, Reason string
}
