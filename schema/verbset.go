package schema

import (
	"maps"

	"github.com/fieldperm/fieldperm/verbs"
)

// VerbSet is a set of verbs that are barriers, each with its extent; nil is empty.
type VerbSet map[verbs.Verb]Extent

// Extent says for which changes a barrier holds. The zero value means all changes.
type Extent struct {
	// OwnersOnly means that the barrier holds only for changes of owners.
	OwnersOnly bool
	// StatusOnly means that the barrier holds only for changes of owners in the status.
	StatusOnly bool
	// StatusValues means that the barrier holds for changes of values in the status too, in spite of OwnersOnly and StatusOnly.
	StatusValues bool
}

// Add adds a barrier. If the verb is already in the set, the barrier holds for the changes of both extents.
func (s VerbSet) Add(v verbs.Verb, e Extent) {
	was, known := s[v]
	if !known {
		s[v] = e
		return
	}
	out := was
	if was.StatusOnly || was.OwnersOnly && !e.StatusOnly {
		out = e
	}
	out.StatusValues = out.limited() && (was.StatusValues || e.StatusValues)
	s[v] = out
}

// Plus returns the barriers of both sets. A verb of both holds for the changes of both extents. Neither set changes.
func (s VerbSet) Plus(others VerbSet) VerbSet {
	switch {
	case len(others) == 0:
		return s
	case len(s) == 0:
		return others
	}
	out := maps.Clone(s)
	for v, e := range others {
		out.Add(v, e)
	}
	return out
}

// limited reports whether the barrier does not hold for changes of values outside the status.
func (e Extent) limited() bool { return e.OwnersOnly || e.StatusOnly }

// ForValues returns the barriers that hold for changes of values outside the status.
func (s VerbSet) ForValues() VerbSet { return s.without(Extent.limited) }

// ForStatusValues returns the barriers that hold for changes of values in the status.
func (s VerbSet) ForStatusValues() VerbSet {
	return s.without(func(e Extent) bool { return e.limited() && !e.StatusValues })
}

// ForOwners returns the barriers that hold for changes of owners outside the status. For owners in the status all barriers hold.
func (s VerbSet) ForOwners() VerbSet {
	return s.without(func(e Extent) bool { return e.StatusOnly })
}

// With returns the barriers of both sets, each with its extent in s if it is in s.
func (s VerbSet) With(others VerbSet) VerbSet {
	out := VerbSet{}
	maps.Copy(out, others)
	maps.Copy(out, s)
	return out
}

// without returns the set without the verbs for which left is true. If there are none, it returns s itself.
func (s VerbSet) without(left func(Extent) bool) VerbSet {
	out := s
	for v, e := range s {
		if left(e) {
			if len(out) == len(s) {
				out = maps.Clone(s)
			}
			delete(out, v)
		}
	}
	return out
}

// Has reports whether v is in the set. The zero verb is never in a set.
func (s VerbSet) Has(v verbs.Verb) bool {
	_, ok := s[v]
	return ok && !v.IsZero()
}

// HasWith reports whether a verb is in the set with any parameter.
func (s VerbSet) HasWith(base verbs.Verb) bool {
	for v := range s {
		if v != base && v.WithoutParameter() == base {
			return true
		}
	}
	return false
}
