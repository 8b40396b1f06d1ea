// Package refresh repeats work that keeps something current: at once, soon after a change, at an interval, and again soon after a
// failure.
//
// Start at Loop. The package imports nothing of fieldperm.
package refresh
