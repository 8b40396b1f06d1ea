package exact

import (
	"bytes"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// manager identifies a manager. The version is part of the identity of managers that update, not of managers that apply.
type manager struct{ name, operation, subresource, version string }

type ownerEntry struct {
	manager
	version, time string
	// raw is FieldsV1, nil if there is none. set is its meaning, nil if it has none.
	raw *value
	set *fieldpath.Set
}

type ownerList []ownerEntry

// readOwners fails for a list that no API server writes.
func readOwners(v *value) (ownerList, bool) {
	if v == nil || v.is(null) {
		return nil, true
	}
	if !v.is(list) {
		return nil, false
	}
	var out ownerList
	for _, item := range v.items {
		e, ok := readOwner(item)
		if !ok {
			return nil, false
		}
		out = append(out, e)
	}
	return out, true
}

func readOwner(item *value) (ownerEntry, bool) {
	e := ownerEntry{set: fieldpath.NewSet()}
	if !item.is(object) || item.repeats() {
		return e, false
	}
	fieldsType := ""
	for _, m := range item.members {
		if m.value.is(null) {
			continue
		}
		into := map[string]*string{"manager": &e.name, "operation": &e.operation, "subresource": &e.subresource, "apiVersion": &e.version, "time": &e.time, "fieldsType": &fieldsType}[m.name]
		switch {
		case into != nil && m.value.is(text):
			*into = m.value.text
		case m.name == "fieldsV1":
			if e.raw = m.value; !m.value.is(object) {
				return e, false
			}
			e.set, _ = decodeSet(m.value)
		default:
			return e, false
		}
	}
	if e.operation == "Update" {
		e.manager.version = e.version
	}
	return e, fieldsType == "FieldsV1" && (e.operation == "Apply" || e.operation == "Update")
}

// decodeSet fails for a value that the library would read with another meaning.
func decodeSet(v *value) (*fieldpath.Set, bool) {
	set := fieldpath.NewSet()
	if !v.is(object) || set.FromJSON(bytes.NewReader(v.compact())) != nil {
		return nil, false
	}
	if written(set).canonical() != v.canonical() {
		return nil, false
	}
	return set, true
}

// written is the form in which the library writes a set.
func written(set *fieldpath.Set) *value {
	raw, err := set.ToJSON()
	return parsedOr(object, raw, err)
}

func (l ownerList) managers() []manager {
	var out []manager
	for _, e := range l {
		if !slices.Contains(out, e.manager) {
			out = append(out, e.manager)
		}
	}
	return out
}

func (l ownerList) of(m manager) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, e := range l {
		if e.manager == m && e.set != nil {
			out = out.Union(e.set)
		}
	}
	return out
}

func (l ownerList) updates() int {
	n := 0
	for _, e := range l {
		if e.operation == "Update" {
			n++
		}
	}
	return n
}

func (l ownerList) has(m manager) bool {
	return slices.ContainsFunc(l, func(e ownerEntry) bool { return e.manager == m })
}

func (l ownerList) count(m manager) (n int) {
	for _, e := range l {
		if e.manager == m {
			n++
		}
	}
	return n
}

// lastOfEach keeps only the last entry of each manager.
func (l ownerList) lastOfEach() (out ownerList) {
	for i, e := range l {
		if !l[i+1:].has(e.manager) {
			out = append(out, e)
		}
	}
	return out
}

// one is the first entry of a manager, if it has any.
func (l ownerList) one(m manager) ownerEntry {
	return l[slices.IndexFunc(l, func(e ownerEntry) bool { return e.manager == m })]
}
