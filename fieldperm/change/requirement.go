package change

import (
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Operation is the kind of change of a node.
type Operation string

// These are the operations. Created is the existence of a new object, beside its fields (C5). Ownership is a change of the owners of a field
// whose value stays (D8).
const (
	Created   Operation = "created"
	Modified  Operation = "modified"
	Added     Operation = "added"
	Removed   Operation = "removed"
	Reordered Operation = "reordered"
	Ownership Operation = "ownership"
)

// Requirement is one changed node and the verbs that cover the change. The zero Requirement has an empty chain and a barrier, so nothing
// covers it.
type Requirement struct {
	Path      fieldpath.Path
	Operation Operation
	// Chain holds the verbs of the annotated ancestors and of the node itself, from general to specific. A node whose verb takes a
	// parameter adds two verbs: the verb for all parameters, then the verb with its own parameter, if the value can be a parameter.
	// Callers must not change Chain.
	Chain []verbs.Verb
	// Barrier is the index in Chain of the first verb that counts, because of the last barrier on the path (C2). With a barrier the
	// generic permission does not count. -1 means that there is no barrier; len(Chain) means that nothing covers the change.
	Barrier int
	// Instead is the part of a message with the cure for a user without one of the verbs. It may be empty.
	Instead string
	// Entry names, for a message, the entry of managedFields that is the reason for an Ownership requirement of the whole object. It is
	// empty otherwise.
	Entry string
}

// Barred reports whether a barrier holds, so that the generic permission does not count.
func (r *Requirement) Barred() bool { return r.Barrier >= 0 }

// Candidates returns the verbs that cover the change, from general to specific. Any one of them is enough.
func (r *Requirement) Candidates() []verbs.Verb {
	if r.Barrier > 0 {
		return r.Chain[r.Barrier:]
	}
	return r.Chain
}
