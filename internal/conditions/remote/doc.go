// Package remote asks authorizers that return conditions, over HTTP. The authorization phase sends a SubjectAccessReview in a dialect of
// package wire. Admission sends an AuthorizationConditionsReview with the conditions as they were returned.
//
// Start at New. evaluate.go has the second question, and endpoint.go what happens after an endpoint has not answered. The package does not
// decide on conditions itself, and does not follow redirects. Every failure is decided by the failure policy, and a failure never allows.
package remote
