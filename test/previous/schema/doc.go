// Package schema is the compiled permission schema. For every kind it holds an immutable tree of nodes. A node says how values compare
// (topology), which granular verb guards them, and where barriers are.
//
// Read Node first, then Permission, then Compile, which turns Documents (decoded by schema/load) into a Schema. Nothing in a Schema
// changes after Compile, so goroutines may share it without locks. A new compile makes a new Schema.
//
// The package may import verbs and api/v1alpha1. It never imports a client, HTTP, or higher packages (fieldperm, admission, internal).
package schema
