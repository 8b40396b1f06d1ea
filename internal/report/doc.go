// Package report is the description of one decision for people and tools: kubectl fieldperm review prints it, and POST /review
// responds with it. Both give the same bytes for the same decision.
//
// Start at Report, whose JSON is a contract. Then read Decide, which asks the one Reviewer the questions of both admission
// webhooks. The package knows neither flags nor HTTP.
package report
