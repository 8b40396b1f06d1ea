// Package discovery keeps the allowlist of /authorize (A1, A2): the resources and subresources that
// the API server itself serves and persists, so that every write to them goes through admission.
//
// Start at Build, which derives an Allowlist from what the server says of itself, then Watcher, which
// keeps one current. Services tells them, and package
// sources, who serves what.
package discovery
