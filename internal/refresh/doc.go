// Package refresh repeats a piece of work that keeps something current: at once, soon after it is
// told of a change, at an interval, and again soon after a failure.
//
// Start at Loop. The package imports nothing of fieldperm.
package refresh
