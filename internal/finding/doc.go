// Package finding is what commands that look for faults have in common: levels, rules, findings with their place, and the log of a run as
// SARIF. internal/audit finds faults of grants, internal/lint those of permission schemas.
//
// Start at Finding, then read Rule and Tool.SARIF. The package imports nothing of fieldperm, reads no file and prints nothing.
package finding
