// Package review has the questions of people and tools, and the reports that answer them. POST /review decides about a write that has
// not been sent, and GET /permissions lists the verbs of the permission schema in force. kubectl fieldperm review prints the same
// reports: for the same decision it gives the same bytes.
//
// Start at Report, whose JSON is a contract. Then read Decide, which asks the one Reviewer the questions of both admission webhooks.
// Neither depends on flags or HTTP. API is the HTTP API: in ReviewHandler, subject checks whether the caller may ask about the user, and complete
// checks the contents of a question; then PermissionsHandler.
//
// The caller comes only from the context: k8s.io/apiserver's request.UserFrom. The package must not import cobra, because the server
// imports it.
package review
