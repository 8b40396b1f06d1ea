package plain

import (
	"bytes"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxUpdateManagers is how many entries of operation Update an API server keeps before it merges the
// oldest into ancientManager (k8s.io/apimachinery/pkg/util/managedfields, capmanagers).
const (
	maxUpdateManagers      = 10
	ancientManager         = "ancient-changes"
	beforeFirstApplyOwner  = "before-first-apply"
	operationUpdate        = "Update"
	managedFieldsTypeKnown = "FieldsV1"
)

// manager is who owns fields. The version that it wrote in is no part of who it is.
type manager struct {
	name, operation, subresource string
}

// managedFields is the decoded list of one object.
type managedFields struct {
	owners  map[manager]*fieldpath.Set
	order   []manager
	entries []managedEntry
	updates int
}

type managedEntry struct {
	manager
	version string
	time    string
	// raw is what was decoded to fields, or was not, because nobody but an API server wrote it.
	raw    *value
	fields *fieldpath.Set
	valid  bool
}

// decodeManagedFields reports false for anything that an API server would not write. Fields are judged
// later, because those of a manager that stay as they are need not be understood: see changed.
func decodeManagedFields(v *value) (*managedFields, bool) {
	m := &managedFields{owners: map[manager]*fieldpath.Set{}}
	if v == nil || v.kind == kindNull {
		return m, true
	}
	if v.kind != kindList {
		return nil, false
	}
	for _, item := range v.items {
		entry, ok := decodeManagedEntry(item)
		if !ok {
			return nil, false
		}
		if entry.operation == operationUpdate {
			m.updates++
		}
		m.entries = append(m.entries, entry)
		if already := m.owners[entry.manager]; already != nil {
			m.owners[entry.manager] = already.Union(entry.fields)
			continue
		}
		m.owners[entry.manager] = entry.fields
		m.order = append(m.order, entry.manager)
	}
	return m, true
}

func decodeManagedEntry(item *value) (managedEntry, bool) {
	var e managedEntry
	if item.kind != kindObject || item.duplicate {
		return e, false
	}
	texts := map[string]*string{"manager": &e.name, "operation": &e.operation, "apiVersion": &e.version, "time": &e.time, "subresource": &e.subresource}
	var fieldsType string
	texts["fieldsType"] = &fieldsType
	e.fields = fieldpath.NewSet()
	for _, member := range item.members {
		switch text := texts[member.name]; {
		case member.value.kind == kindNull:
		case text != nil && member.value.kind == kindString:
			*text = member.value.text
		case member.name == "fieldsV1" && member.value.kind == kindObject:
			e.raw = member.value
		default:
			return e, false
		}
	}
	if e.valid = e.raw == nil || decodeFields(e.fields, e.raw); !e.valid {
		e.fields = fieldpath.NewSet()
	}
	return e, fieldsType == managedFieldsTypeKnown && (e.operation == operationUpdate || e.operation == "Apply")
}

// decodeFields refuses what the library passes over in silence, such as elements of unknown kinds:
// what is not read cannot be compared.
func decodeFields(set *fieldpath.Set, v *value) bool {
	if set.FromJSON(bytes.NewReader(v.raw)) != nil {
		return false
	}
	raw, err := set.ToJSON()
	if err != nil {
		return false
	}
	again, err := decodeAny(raw)
	return err == nil && equal(again, v)
}

// changed returns the managers whose entries differ in more than their time, in the order in which they come.
func changed(was, is *managedFields) []manager {
	var out []manager
	for _, who := range append(was.order[:len(was.order):len(was.order)], is.order...) {
		before, after := was.of(who), is.of(who)
		same := slices.EqualFunc(before, after, func(a, b managedEntry) bool { return a.version == b.version && equal(a.raw, b.raw) })
		if same || slices.Contains(out, who) {
			continue
		}
		out = append(out, who)
	}
	return out
}

// valid reports whether none of the managers has fields that an API server would not write.
func (m *managedFields) valid(managers []manager) bool {
	return !slices.ContainsFunc(m.entries, func(e managedEntry) bool { return !e.valid && slices.Contains(managers, e.manager) })
}

// mostWeight is what all paths together may weigh that change hands, in bytes and 64 for each element: more
// would take too long to tell apart.
const mostWeight = 128 << 20

// weight returns what the paths of some managers weigh.
func (m *managedFields) weight(managers []manager) int {
	sum := 0
	for _, e := range m.entries {
		if slices.Contains(managers, e.manager) {
			sum += weigh(e.raw, 0)
		}
	}
	return sum
}

func weigh(v *value, above int) int {
	sum := 0
	if !isObject(v) {
		return 0
	}
	for _, m := range v.members {
		own := above + 64 + len(m.name)
		switch {
		case m.name == ".":
			sum += above
		case isObject(m.value) && len(m.value.members) > 0 || isList(m.value) && len(m.value.items) > 0:
			sum += weigh(m.value, own)
		default:
			sum += own
		}
	}
	return sum
}

// of returns the entries of a manager.
func (m *managedFields) of(who manager) []managedEntry {
	var out []managedEntry
	for _, e := range m.entries {
		if e.manager == who {
			out = append(out, e)
		}
	}
	return out
}

// fields returns the paths that the manager owns, an empty set if none.
func (m *managedFields) fields(who manager) *fieldpath.Set {
	if s := m.owners[who]; s != nil {
		return s
	}
	return fieldpath.NewSet()
}

// holdsBelow reports whether the manager owns a path strictly below p.
func (m *managedFields) holdsBelow(who manager, p fieldpath.Path) bool {
	s := m.fields(who)
	for _, element := range p {
		s = s.WithPrefix(element)
	}
	return !s.Empty()
}

// ofOtherVersion reports whether the manager owns p only by entries of other versions than the
// object's.
func (m *managedFields) ofOtherVersion(who manager, p fieldpath.Path, version *value) bool {
	for _, e := range m.entries {
		if e.manager == who && e.fields.Has(p) && isString(version) && e.version == version.text {
			return false
		}
	}
	return true
}

// touched counts the entries whose fields stayed and whose time or version changed. An API server
// touches only the entry of who makes the request, and gives it the version of the request: an entry
// with another new version counts twice, because its paths are to mean something else.
func touched(old, new *managedFields, version *value) int {
	n := 0
	for _, is := range new.entries {
		was := old.entry(is.manager, is.version)
		switch {
		case old.has(is):
		case was != nil:
			if was.time != is.time && was.fields.Equals(is.fields) {
				n++
			}
		case old.movesTo(new, is):
			n++
			if !isString(version) || is.version != version.text {
				n++
			}
		}
	}
	return n
}

// has reports whether an entry of m is the one given, its time included.
func (m *managedFields) has(is managedEntry) bool {
	return slices.ContainsFunc(m.entries, func(was managedEntry) bool {
		return was.manager == is.manager && was.version == is.version && was.time == is.time && equal(was.raw, is.raw)
	})
}

func isString(v *value) bool { return v != nil && v.kind == kindString }

func (m *managedFields) entry(who manager, version string) *managedEntry {
	for i := range m.entries {
		if e := &m.entries[i]; e.manager == who && e.version == version {
			return e
		}
	}
	return nil
}

// movesTo reports whether an entry of m has come to be the one given, of another version.
func (m *managedFields) movesTo(new *managedFields, is managedEntry) bool {
	return slices.ContainsFunc(m.entries, func(was managedEntry) bool {
		return was.manager == is.manager && was.fields.Equals(is.fields) && new.entry(was.manager, was.version) == nil
	})
}
