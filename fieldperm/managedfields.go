package fieldperm

import (
	"bytes"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// maxUpdateManagers is how many entries of operation Update an API server keeps before it merges the
// oldest into ancientManager (k8s.io/apimachinery/pkg/util/managedfields, capmanagers).
const (
	maxUpdateManagers      = 10
	ancientManager         = "ancient-changes"
	beforeFirstApplyOwner  = "before-first-apply"
	operationUpdate        = "Update"
	operationApply         = "Apply"
	managedFieldsTypeKnown = "FieldsV1"
)

// manager is who owns fields. The version that it wrote in is no part of who it is.
type manager struct {
	name, operation, subresource string
}

// managedFields is the list of one object. Its FieldsV1 are decoded when somebody asks for them.
type managedFields struct {
	entries []managedEntry
	// of are the places in entries of each manager, in order.
	of      map[manager][]int
	order   []manager
	updates int
	// owned are the sets that have been asked for.
	owned map[manager]*fieldpath.Set
}

type managedEntry struct {
	manager
	version, time string
	// raw is FieldsV1, absent if there is none; fields is what it means, nil until it is decoded.
	raw    rawjson.Value
	fields *fieldpath.Set
	faulty bool
}

// readManagedFields reports false for anything that an API server would not write. FieldsV1 are judged
// later, because those of a manager that stay as they are need not be understood: see changedManagers.
func readManagedFields(v rawjson.Value) (*managedFields, bool) {
	m := &managedFields{of: map[manager][]int{}, owned: map[manager]*fieldpath.Set{}}
	if v.IsAbsent() || v.Kind() == rawjson.Null {
		return m, true
	}
	if !v.IsList() {
		return nil, false
	}
	for i := v.Items(); i.Next(); {
		entry, ok := readManagedEntry(i.Value())
		if !ok {
			return nil, false
		}
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
	e.version, e.time, e.raw = members[entryVersion].Text(), members[entryTime].Text(), members[entryFields]
	return e, true
}

// The members of an entry.
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

// entryMembers returns the members of an entry that are not null, and whether an API server might have
// written it.
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
		if seen&(1<<at) != 0 && (at < entrySize || item.Ambiguous()) {
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
	return members, known
}

// set returns what the entry owns, nothing if it is faulty.
func (e *managedEntry) set() *fieldpath.Set {
	if e.fields == nil {
		e.fields = fieldpath.NewSet()
		if !e.raw.IsAbsent() && !decodeFields(e.fields, e.raw) {
			e.fields, e.faulty = fieldpath.NewSet(), true
		}
	}
	return e.fields
}

// decodeFields refuses what the library passes over in silence, such as elements of unknown kinds:
// what is not read cannot be compared.
func decodeFields(set *fieldpath.Set, v rawjson.Value) bool {
	if set.FromJSON(bytes.NewReader(v.Raw())) != nil {
		return false
	}
	raw, err := set.ToJSON()
	if err != nil {
		return false
	}
	again, err := rawjson.Scan(raw)
	if err != nil {
		return false
	}
	defer again.Release()
	var c rawjson.Comparison
	return c.Equal(again.Root(), v)
}

// changedManagers returns the managers whose entries differ in more than their time, in the order in which
// they come, and reports false if one of those has fields that an API server would not write.
func changedManagers(was, is *managedFields) ([]manager, bool) {
	var out []manager
	var c rawjson.Comparison
	same := func(who manager) bool {
		return slices.EqualFunc(was.of[who], is.of[who], func(i, j int) bool {
			a, b := &was.entries[i], &is.entries[j]
			return a.version == b.version && c.Equal(a.raw, b.raw)
		})
	}
	judge := func(m *managedFields, who manager) bool {
		for _, i := range m.of[who] {
			if m.entries[i].set(); m.entries[i].faulty {
				return false
			}
		}
		return true
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
	for _, who := range out {
		if !judge(was, who) || !judge(is, who) {
			return nil, false
		}
	}
	return out, true
}

// fields returns the paths that the manager owns, an empty set if none.
func (m *managedFields) fields(who manager) *fieldpath.Set {
	set := m.owned[who]
	if set == nil {
		set = fieldpath.NewSet()
		for n, i := range m.of[who] {
			if n == 0 {
				set = m.entries[i].set()
			} else {
				set = set.Union(m.entries[i].set())
			}
		}
		m.owned[who] = set
	}
	return set
}

// has reports whether the manager is there.
func (m *managedFields) has(who manager) bool { return len(m.of[who]) > 0 }

// holdsBelow reports whether the manager owns a path strictly below p.
func (m *managedFields) holdsBelow(who manager, p fieldpath.Path) bool {
	return hasBelow(m.fields(who), p)
}

// ofOtherVersion reports whether the manager owns p only by entries of other versions than the
// object's.
func (m *managedFields) ofOtherVersion(who manager, p fieldpath.Path, version rawjson.Value) bool {
	for _, i := range m.of[who] {
		if e := &m.entries[i]; e.set().Has(p) && version.Is(e.version) {
			return false
		}
	}
	return true
}

// touched counts the entries whose fields stayed and whose time or version changed. An API server
// touches only the entry of who makes the request, and gives it the version of the request: an entry
// with another new version counts twice, because its paths are to mean something else.
func touched(old, new *managedFields, version rawjson.Value) int {
	n := 0
	var c rawjson.Comparison
	equal := func(a, b *managedEntry) bool { return c.Equal(a.raw, b.raw) || a.set().Equals(b.set()) }
	for i := range new.entries {
		is := &new.entries[i]
		was, stays := old.entry(is, &c)
		switch {
		case stays:
		case was != nil:
			if was.time != is.time && equal(was, is) {
				n++
			}
		case old.movesTo(new, is, equal):
			n++
			if !version.Is(is.version) {
				n++
			}
		}
	}
	return n
}

// entry returns the first entry of m of the manager and version of the one given, nil if there is none,
// and whether one of m is just the same.
func (m *managedFields) entry(is *managedEntry, c *rawjson.Comparison) (first *managedEntry, same bool) {
	for _, i := range m.of[is.manager] {
		if e := &m.entries[i]; e.version == is.version {
			if first == nil {
				first = e
			}
			if e.time == is.time && c.Equal(e.raw, is.raw) {
				return first, true
			}
		}
	}
	return first, false
}

// movesTo reports whether an entry of m has come to be the one given, of another version.
func (m *managedFields) movesTo(new *managedFields, is *managedEntry, equal func(a, b *managedEntry) bool) bool {
	return slices.ContainsFunc(m.of[is.manager], func(i int) bool {
		was := &m.entries[i]
		gone := !slices.ContainsFunc(new.of[was.manager], func(j int) bool { return new.entries[j].version == was.version })
		return gone && equal(was, is)
	})
}

func hasBelow(set *fieldpath.Set, p fieldpath.Path) bool {
	for _, element := range p {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}
