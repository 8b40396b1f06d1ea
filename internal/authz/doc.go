// Package authz asks an authorizer about the author of a request, verb by verb. New makes the
// authorizer that asks the kube-apiserver's whole chain by SubjectAccessReview, with a cache and with
// equal questions asked once (P8); For and ForReview close over who asks and about what, so that
// fieldperm.Decide sees an authorizer that knows verbs only.
//
// Start reading at For. The package imports admission and fieldperm, never the server.
package authz
