// Package admission turns AdmissionReviews and SubjectAccessReviews into decisions and responses.
//
// Start at Reviewer, which reviews one AdmissionRequest and needs no HTTP. Then read Response, which renders its result,
// AuthorizeReviewer (/authorize), ConditionalAuthorizer (KEP-5681) and SchemaReviewer (/admit/schemas). The handlers only add HTTP and decoding.
//
// The rule names in comments (A1, P5, …) are those of docs/semantics.md. The package imports fieldperm, schema and schema/load, never
// internal. The caller provides the authorizer as a function.
package admission
