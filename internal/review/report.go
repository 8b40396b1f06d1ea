package review

import (
	"errors"

	"github.com/fieldperm/fieldperm/admission"
)

// Report is the output of one review. Its JSON is a contract: names do not change, and lists are never null.
type Report struct {
	Allowed bool `json:"allowed"`
	// Mode is the kind of permission that allowed the request: generic, granular, uncovered or none.
	Mode    string   `json:"mode"`
	Changes []Change `json:"changes"`
	// Checks are in the order in which they were asked.
	Checks []Check `json:"checks"`
	// Message says why the request is denied, "" if it is allowed.
	Message string `json:"message"`
	// Notes name the parts of the request that could not be judged. The key is left out if there are none.
	Notes []string `json:"notes,omitempty"`
}

// Change is one changed field and the verbs that could cover it.
type Change struct {
	Path string `json:"path"`
	// Operation is modified, added, removed, reordered or ownership.
	Operation string `json:"operation"`
	// Chain holds the verbs from general to specific.
	Chain []string `json:"chain"`
	// Barrier is the index in Chain of the first verb that counts, because of the last barrier. It is -1 if there is no barrier.
	Barrier int `json:"barrier"`
	// CoveredBy is the verb that covers the change, or the generic verb; "" if no such verb is known.
	CoveredBy string `json:"coveredBy"`
}

// Check is a verb that was asked for.
type Check struct {
	Verb    string `json:"verb"`
	Allowed bool   `json:"allowed"`
}

// ErrTooLong means that the report is too long to be useful. Paths and verbs contain names from the object, of any length, and
// repeat them for each change.
var ErrTooLong = errors.New("report: there are too many changes, or their names are too long: ask about fewer at once")

// newReport returns the report of a decision. most bounds the bytes of paths and verbs; 0 means no bound. Beyond it the error is
// ErrTooLong.
func newReport(result *admission.Result, most int) (*Report, error) {
	size := 0
	r := &Report{
		Allowed: result.Allowed,
		Mode:    string(result.Mode),
		Message: result.Message,
		Changes: make([]Change, 0, len(result.Requirements)),
		Checks:  make([]Check, 0, len(result.Checks)),
	}
	for i := range result.Requirements {
		requirement := &result.Requirements[i]
		change := Change{
			Path:      requirement.Path.String(),
			Operation: string(requirement.Operation),
			Chain:     make([]string, 0, len(requirement.Chain)),
			Barrier:   requirement.Barrier,
		}
		for _, v := range requirement.Chain {
			change.Chain = append(change.Chain, v.String())
			size += len(change.Chain[len(change.Chain)-1])
		}
		if size += len(change.Path); most > 0 && size > most {
			return nil, ErrTooLong
		}
		if i < len(result.CoveredBy) {
			change.CoveredBy = result.CoveredBy[i]
		}
		r.Changes = append(r.Changes, change)
	}
	for _, check := range result.Checks {
		r.Checks = append(r.Checks, Check{Verb: check.Verb, Allowed: check.Allowed})
	}
	return r, nil
}

// Candidates returns the verbs of the chain that count, from general to specific.
func (c *Change) Candidates() []string {
	if c.Barrier > 0 {
		return c.Chain[c.Barrier:]
	}
	return c.Chain
}
