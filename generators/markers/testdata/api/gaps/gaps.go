// Package gaps has markers that no type owns, though they are meant for types that are used.
package gaps

// +permission-excluded
// +permission-verb:"example.com/amount"

// Amount is what counts.

// Amount is more.
type Amount int64

// +permission-excluded
// +permission-verb:"example.com/budget"
type (
	// Budget is an amount.
	Budget int64
)

// Size has a marker behind it.
type Size string // +permission-verb:"example.com/size"

// Unused is used by no kind.
type Unused struct {
	// +permission-verbs:"example.com/unused"
	A string `json:"a"`
} // +permission-verb:"example.com/unused"
