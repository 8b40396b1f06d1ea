// Package reviewapi is fieldperm's HTTP API for people and tools. POST /review decides about a write that has not been sent, and
// GET /permissions lists the verbs of the permission schema in force.
//
// Start at API, then read ReviewHandler (subject checks who may ask about which user, complete checks the contents of a question),
// then PermissionsHandler. report.Decide makes the decision, as for kubectl fieldperm review.
//
// The caller comes only from the context: k8s.io/apiserver's request.UserFrom.
package reviewapi
