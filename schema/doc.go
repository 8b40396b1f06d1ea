// Package schema is the compiled permission schema: for every kind an immutable tree of nodes that
// says how values compare (topology), which granular verb guards them, and where barriers are.
//
// Read Node first, then Permission, then Compile, which turns Documents (decoded by schema/load)
// into a Schema. Nothing in a Schema changes after Compile, so that it may be shared between
// goroutines without locks; a new compile makes a new Schema.
//
// The package may import verbs and api/v1alpha1, never a client, HTTP, or what lies above it
// (fieldperm, admission, internal).
package schema
