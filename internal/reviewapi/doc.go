// Package reviewapi is fieldperm for people and tools that ask over HTTP: POST /review decides on a write
// that nobody has sent, and GET /permissions lists the verbs of the permission schema in force.
//
// Start at API, then ReviewHandler (who may ask about whom is in subject, what a question must have in
// complete), then PermissionsHandler. The decision is report.Decide's, as for kubectl fieldperm review.
//
// Who calls is in the context already: k8s.io/apiserver's request.UserFrom, and nothing else, says so.
package reviewapi
