package schema

import (
	"cmp"

	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// podMark is the part of a Pod that a field becomes. If entries say that a field becomes two parts, the barriers of one of them would not hold, which
// is a fault of the entry that comes later.
type podMark struct {
	pod PodPart
	// marks is the first entry that says so. contradicts is an entry that says otherwise, nil for none.
	marks, contradicts *guard
}

// markOf returns the mark of an entry.
func markOf(g *guard) podMark {
	if g.entry.Pod == NoPod {
		return podMark{}
	}
	return podMark{pod: g.entry.Pod, marks: g}
}

// and returns the mark of both.
func (m podMark) and(other podMark) podMark {
	switch {
	case m.marks == nil || other.marks == nil:
		return cmp.Or(m, other)
	case other.marks.isBefore(m.marks):
		m, other = other, m
	}
	if m.pod != other.pod {
		m.contradicts = cmp.Or(m.contradicts, other.marks)
	}
	m.contradicts = cmp.Or(m.contradicts, other.contradicts)
	return m
}

// isBefore reports whether the document of a guard comes before that of another one.
func (g *guard) isBefore(other *guard) bool {
	return cmp.Or(cmp.Compare(g.rank, other.rank), cmp.Compare(g.document, other.document)) < 0
}

// fault returns the fault of the entry that contradicts, nil for none.
func (m podMark) fault(at fieldpath.Pattern) error {
	if m.contradicts == nil {
		return nil
	}
	return m.contradicts.fault("%s: the include makes the field the %s of Pods, and the entry at %s:%s makes it their %s: include the fragment at another field, or change the other entry",
		orRoot(at), m.contradicts.entry.Pod, m.marks.source, m.marks.entry.Pointer, m.pod)
}
