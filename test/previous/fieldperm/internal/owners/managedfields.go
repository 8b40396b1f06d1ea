package owners

import (
	"slices"
	"time"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
)

// maxUpdateManagers is how many entries of operation Update an API server keeps. It merges the oldest of the others into ancientManager
// (k8s.io/apimachinery/pkg/util/managedfields, capmanagers).
const (
	maxUpdateManagers      = 10
	ancientManager         = "ancient-changes"
	beforeFirstApplyOwner  = "before-first-apply"
	operationUpdate        = "Update"
	operationApply         = "Apply"
	managedFieldsTypeKnown = "FieldsV1"
)

// manager identifies an owner of fields in the way the API server does. An applier has one entry, whatever version it wrote in, so its
// version is "". An Update manager has one entry for each version.
type manager struct {
	name, operation, subresource, version string
}

// managedFields is the list of one object. Its FieldsV1 are decoded when they are needed.
type managedFields struct {
	entries []managedEntry
	// of holds the indexes of each manager's entries, in order. An API server writes one entry for each manager.
	of      map[manager][]int
	order   []manager
	updates int
	// upgradedNames is the cached result of upgraded, nil until the first call.
	upgradedNames map[string]bool
}

type managedEntry struct {
	manager
	// wroteIn is the apiVersion of the entry, for appliers too.
	wroteIn, time string
	// raw is the FieldsV1 of the entry, absent if there is none. fields is the decoded set, nil until it is decoded.
	raw    rawjson.Value
	fields *smdpath.Set
	faulty bool
	// decoder is that of all entries of the list, nil for an entry that is read alone.
	decoder *decoder
}

// readManagedFields decodes the list. It reports false for a list that an API server would not write. It does not check FieldsV1: if the
// entry of a manager does not change, its FieldsV1 need not be understood (see changedManagers).
func readManagedFields(v rawjson.Value) (*managedFields, bool) {
	m := &managedFields{of: map[manager][]int{}}
	if v.IsAbsent() || v.Kind() == rawjson.Null {
		return m, true
	}
	if !v.IsList() {
		return nil, false
	}
	by := &decoder{}
	for i := v.Items(); i.Next(); {
		entry, ok := readManagedEntry(i.Value())
		if !ok {
			return nil, false
		}
		entry.decoder = by
		if entry.operation == operationUpdate {
			m.updates++
		}
		if len(m.of[entry.manager]) == 0 {
			m.order = append(m.order, entry.manager)
		}
		m.of[entry.manager] = append(m.of[entry.manager], len(m.entries))
		m.entries = append(m.entries, entry)
	}
	return m, true
}

func readManagedEntry(item rawjson.Value) (managedEntry, bool) {
	var e managedEntry
	members, ok := entryMembers(item)
	if !ok {
		return e, false
	}
	e.name, e.operation, e.subresource = members[entryManager].Text(), members[entryOperation].Text(), members[entrySubresource].Text()
	e.wroteIn, e.time, e.raw = members[entryVersion].Text(), members[entryTime].Text(), members[entryFields]
	if e.operation == operationUpdate {
		e.version = e.wroteIn
	}
	return e, true
}

// These are the members of an entry.
const (
	entryManager = iota
	entryOperation
	entryVersion
	entryTime
	entrySubresource
	entryType
	entryFields
	entrySize
)

// entryMembers returns the members of an entry that are not null, and whether an API server might have written the entry.
func entryMembers(item rawjson.Value) (members [entrySize]rawjson.Value, ok bool) {
	if !item.IsObject() {
		return members, false
	}
	seen := 0
	for m := item.Members(); m.Next(); {
		at, kind := entrySize, rawjson.String
		switch name := m.Name(); {
		case name.Is("manager"):
			at = entryManager
		case name.Is("operation"):
			at = entryOperation
		case name.Is("apiVersion"):
			at = entryVersion
		case name.Is("time"):
			at = entryTime
		case name.Is("subresource"):
			at = entrySubresource
		case name.Is("fieldsType"):
			at = entryType
		case name.Is("fieldsV1"):
			at, kind = entryFields, rawjson.Object
		}
		if at < entrySize && seen&(1<<at) != 0 {
			return members, false
		}
		seen |= 1 << at
		switch v := m.Value(); {
		case v.Kind() == rawjson.Null:
		case at == entrySize || v.Kind() != kind:
			return members, false
		default:
			members[at] = v
		}
	}
	known := members[entryType].Is(managedFieldsTypeKnown) && (members[entryOperation].Is(operationUpdate) || members[entryOperation].Is(operationApply))
	return members, known && (seen&(1<<entrySize) == 0 || !item.Ambiguous())
}

// set returns the paths that the entry owns, an empty set if the entry is faulty.
func (e *managedEntry) set() *smdpath.Set {
	if e.fields == nil {
		e.fields = smdpath.NewSet()
		if e.decoder == nil {
			e.decoder = &decoder{}
		}
		if !e.raw.IsAbsent() && !e.decoder.decode(e.fields, e.raw) {
			e.fields, e.faulty = smdpath.NewSet(), true
		}
	}
	return e.fields
}

// changedManagers returns the managers whose entries differ in more than their time, in the order of the lists.
func changedManagers(was, is *managedFields) []manager {
	var out []manager
	var c rawjson.Comparison
	same := func(who manager) bool {
		return slices.EqualFunc(was.of[who], is.of[who], func(i, j int) bool {
			a, b := &was.entries[i], &is.entries[j]
			return a.wroteIn == b.wroteIn && c.Equal(a.raw, b.raw)
		})
	}
	for _, who := range was.order {
		if !same(who) {
			out = append(out, who)
		}
	}
	for _, who := range is.order {
		if len(was.of[who]) == 0 {
			out = append(out, who)
		}
	}
	return out
}

// keepLast keeps the last entry of each manager, as API servers do when they read the list. A write of the Scale may store two entries of
// one manager.
func (m *managedFields) keepLast() {
	if len(m.entries) == len(m.order) {
		return
	}
	last := managedFields{of: map[manager][]int{}, order: m.order}
	for i := range m.entries {
		e := &m.entries[i]
		if all := m.of[e.manager]; all[len(all)-1] != i {
			continue
		}
		if e.operation == operationUpdate {
			last.updates++
		}
		last.of[e.manager] = []int{len(last.entries)}
		last.entries = append(last.entries, *e)
	}
	*m = last
}

// isAged reports whether the entry has no time after the beginning of 1970. No API server writes such a time, and it reads such a time as
// no time.
func (e *managedEntry) isAged() bool {
	at, err := time.Parse(time.RFC3339, e.time)
	return err != nil || at.Unix() <= 0
}

// valid reports whether each of the managers has at most one entry, with a version and with fields that an API server would write.
func (m *managedFields) valid(managers []manager) bool {
	for _, who := range managers {
		if len(m.of[who]) > 1 {
			return false
		}
		if e := m.entry(who); e != nil {
			if e.set(); e.faulty || e.wroteIn == "" {
				return false
			}
		}
	}
	return true
}

// entry returns the first entry of a manager, nil if there is none.
func (m *managedFields) entry(who manager) *managedEntry {
	if at := m.of[who]; len(at) > 0 {
		return &m.entries[at[0]]
	}
	return nil
}

// fields returns the paths that the manager owns, an empty set if none.
func (m *managedFields) fields(who manager) *smdpath.Set {
	if e := m.entry(who); e != nil {
		return e.set()
	}
	return smdpath.NewSet()
}

// has reports whether the manager has an entry.
func (m *managedFields) has(who manager) bool { return len(m.of[who]) > 0 }

// hasBelow reports whether a set has something strictly below a path.
func hasBelow(set *smdpath.Set, p smdpath.Path) bool {
	for _, element := range p {
		set = under(set, element)
	}
	return !set.Empty()
}

// union returns the union of the sets. It halves the list, because one union costs as much as the larger of its two sets.
func union(sets []*smdpath.Set) *smdpath.Set {
	switch n := len(sets); n {
	case 0:
		return smdpath.NewSet()
	case 1:
		return sets[0]
	default:
		return union(sets[:n/2]).Union(union(sets[n/2:]))
	}
}
