// Package admission is the wire: AdmissionReview and SubjectAccessReview in, decisions out.
//
// Start at Reviewer, the review of one AdmissionRequest, callable without HTTP; then Response, which
// renders its result, AuthorizeReviewer (/authorize) and SchemaReviewer (/admit/schemas). The
// handlers below them do no more than HTTP and decoding.
//
// The rules that comments name (A1, P5, …) are those of docs/semantics.md. The package imports
// fieldperm, schema and schema/load, never internal: who is asked comes in as a function.
package admission
