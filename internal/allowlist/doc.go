// Package allowlist maintains the allowlist of /authorize (A1, A2): the resources and subresources that the API server itself
// serves and stores, so that every write to them goes through admission.
//
// Start at Build, which makes a List from the server's discovery, then read Watcher, which keeps one current. Services
// returns which server serves each group; the package sources uses it too.
package allowlist
