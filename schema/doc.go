// Package schema is the compiled permission schema: what a decision reads of the kinds of objects. There is no compiler in it.
//
// # What it does
//
// A Schema has a Kind for each version of each kind. A Kind is a tree of nodes. A Node says how values compare (scalar, List, Map), which Permissions
// guard it, which role it has, and when the API server writes it by itself (Written). A Permission makes a verb, with its parameter, and says for which
// values it is a barrier. Besides the tree a Kind knows what a write through its version may hide (Hidden) and which fields are the same in other
// versions (Likeness).
//
// # How to use it
//
// schema/load decodes documents, and schema/compile makes a Schema of them. KindFor returns the tree for the body of a request, Uncovered the barriers
// that UncoveredPermissionSets add (schema/sets). Map.Child and List.Item go down a tree; Kind.Walk and Kind.Guarded visit all of it.
//
// # What must hold
//
// Nothing changes after a compile, so goroutines share a Schema without locks. Each type is made of its Parts: Parts returns a copy, NewNode and the like
// make a value, and a Node is made once. The zero Node may have barriers below, the zero Likeness has nothing in common, and the zero Schema knows no
// kind: what is not known is charged.
//
// The package imports no client and no HTTP, nor what is built on it.
//
// # Where each rule is
//
//   - C1, chains: permission.go, node.go
//   - C2, barriers: permission.go (Bars), request.go and verbset.go (those of sets), walk.go
//   - C3, versions: hidden.go (HiddenBarriers), likeness.go (Alike)
//   - D6, unknown fields and their spellings: node.go (Unknown, Respells)
//   - D8, the types that structured-merge-diff simulates an apply with: typed.go
//   - D13, writes of the API server: written.go
package schema
