// Package report is what people and tools read of one decision: kubectl fieldperm review prints it, and
// POST /review answers with it, so that both give the same bytes for the same decision.
//
// Start at Report, whose JSON is a contract; then Decide, which says how a question about both admission
// webhooks is put to the one Reviewer. The package knows neither flags nor HTTP.
package report
