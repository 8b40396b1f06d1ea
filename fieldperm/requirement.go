package fieldperm

import "github.com/fieldperm/fieldperm/verbs"

// Operation is what happened to a node.
type Operation string

// The operations. Ownership is a change in who owns a field whose value stays (D8).
const (
	Modified  Operation = "modified"
	Added     Operation = "added"
	Removed   Operation = "removed"
	Reordered Operation = "reordered"
	Ownership Operation = "ownership"
)

// Requirement is one changed node and what covers the change. The zero Requirement has an empty chain
// and a barrier: nothing covers it.
type Requirement struct {
	Path      Path
	Operation Operation
	// Chain holds the verbs of the annotated ancestors and of the node itself, from general to
	// specific. A node whose verb takes a parameter has two: the verb for all parameters, then the verb
	// for its own, if the value makes one. It must not be changed.
	Chain []verbs.Verb
	// Barrier is the index in Chain from which verbs count because of the last barrier on the path,
	// the generic permission not at all (C2). -1 means that there is no barrier; at len(Chain) nothing
	// covers the change.
	Barrier int
	// Instead is what can be done without one of the verbs, for a message; may be empty.
	Instead string
	// Entry is the entry of managedFields that makes an Ownership requirement of the whole object, for a message; empty for others.
	Entry string
}

// Barred reports whether the generic permission does not count.
func (r *Requirement) Barred() bool { return r.Barrier >= 0 }

// Candidates returns the verbs of which any one covers the change, from general to specific.
func (r *Requirement) Candidates() []verbs.Verb {
	if r.Barrier > 0 {
		return r.Chain[r.Barrier:]
	}
	return r.Chain
}
