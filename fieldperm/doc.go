// Package fieldperm is the decision core. Diff finds what changed between two objects and which granular verbs cover each change. The
// plan sets the order in which the verbs are checked. Decide reports whether every change is covered.
//
// Read Requirement first, then Diff (diff.go, members.go, list.go; the comparison of field owners starts in ownership.go), then Decide.
// Diff walks JSON text without decoding it. The rule names in comments (C2, D8, P1, …) are those of docs/semantics.md.
//
// The package uses no client, HTTP, clock or log. It starts no goroutines except Decide's bounded parallel checks. It imports
// internal/rawjson, schema and verbs. It never imports higher packages (admission and the rest of internal). The caller provides an
// Authorizer, which already knows the user and the object.
package fieldperm
