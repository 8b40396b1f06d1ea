package report

import (
	"errors"

	"github.com/fieldperm/fieldperm/admission"
)

// Report is the output of one review. Its JSON is a contract: names do not change, lists are never
// null.
type Report struct {
	Allowed bool `json:"allowed"`
	// Mode is generic, granular, uncovered or none: what let the request in.
	Mode    string   `json:"mode"`
	Changes []Change `json:"changes"`
	// Checks are in the order asked.
	Checks []Check `json:"checks"`
	// Message says why the request is denied, "" if it is allowed.
	Message string `json:"message"`
	// Notes say what could not be judged; without any the key is left out.
	Notes []string `json:"notes,omitempty"`
}

// Change is one changed field and the verbs that could cover it.
type Change struct {
	Path string `json:"path"`
	// Operation is modified, added, removed, reordered or ownership.
	Operation string `json:"operation"`
	// Chain holds the verbs from general to specific.
	Chain []string `json:"chain"`
	// Barrier is the index in Chain from which verbs count, because of the last barrier; -1 if there
	// is none.
	Barrier int `json:"barrier"`
	// CoveredBy is the verb that covers the change, the generic one included; "" if none is known to.
	CoveredBy string `json:"coveredBy"`
}

// Check is a verb that was asked.
type Check struct {
	Verb    string `json:"verb"`
	Allowed bool   `json:"allowed"`
}

// ErrTooLong is of a report that nobody would read: paths and verbs hold names out of the object, of any
// length, and hold them for each change.
var ErrTooLong = errors.New("report: there are too many changes, or their names are too long: ask about fewer at once")

// New reports a decision, in at most so many bytes of paths and verbs; 0 for any number.
func New(result *admission.Result, most int) (*Report, error) {
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

// candidates are the verbs of the chain that count.
func (c *Change) candidates() []string {
	if c.Barrier > 0 {
		return c.Chain[c.Barrier:]
	}
	return c.Chain
}
