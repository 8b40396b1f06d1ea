// Package shared has types that several kinds use.
package shared

// Team is the name of a team.
// +permission-parameter-source:"team"
type Team string

// Budget is an amount for one team.
// +permission-verb:"example.com/teamBudget"
// +permission-parameterized-by:"team"
type Budget int64

// Approval has a marker on its field.
type Approval struct {
	// +permission-verb:"example.com/approval"
	// +permission-excluded
	// +optional
	Approved bool `json:"approved,omitempty"`
	// +optional
	Comment string `json:"comment,omitempty"`
}

// Unmarked is used, and its comments with markers that have no effect belong to types that are not.
type Unmarked struct {
	// +optional
	Note string `json:"note,omitempty"`
}

// Elsewhere is used by no kind here.
type Elsewhere struct {
	// +permission-verbs:"example.com/elsewhere"
	Note string `json:"note,omitempty"`
}
