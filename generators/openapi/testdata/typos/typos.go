// Package typos is not among the paths, and has markers with mistakes.
package typos

// Amount is an amount.
// +permission-verbs:"example.com/amount"
// +permission-excluded-wen:"self > 1"
type Amount int64

// +permission-verb:"example.com/budget"

// Budget is an amount.

// Budget is more.
type Budget int64

// Unused is the type of no field.
// +permission-verbs:"example.com/unused"
type Unused int64
