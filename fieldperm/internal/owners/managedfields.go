package owners

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

const (
	// An API server keeps this many entries of operation Update. It merges the oldest of the others into ancientManager
	// (k8s.io/apimachinery/pkg/util/managedfields, capmanagers).
	maxUpdateManagers     = 10
	ancientManager        = "ancient-changes"
	beforeFirstApplyOwner = "before-first-apply"
	operationUpdate       = "Update"
	operationApply        = "Apply"
)

// clientSideAppliers are the names of managers that kubectl, Argo CD, Flux and Helm take over when they change to server-side apply: they turn
// the Update entries of these names into Apply entries. The next apply of an unchanged manifest then deletes every owned field that is not in
// the manifest (k8s.io/client-go/util/csaupgrade).
var clientSideAppliers = []string{"kubectl-client-side-apply", "argocd-controller", "kustomize-controller", "helm", "helm-controller", beforeFirstApplyOwner}

// lastApplied is the annotation of client-side apply. kubectl takes over the managers that own it, and finds their other entries by name.
var lastApplied = smdpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation)

// manager identifies an owner of fields in the way the API server does. An applier has one entry, whatever version it wrote in, so its
// version is "". An Update manager has one entry for each version.
type manager struct {
	name, operation, subresource, version string
}

// managedFields is the list of one object.
type managedFields struct {
	// order has each manager once, in the order of the list.
	order []manager
	// of has the entries of each manager, in order. An API server writes one entry for each manager.
	of map[manager][]*managedEntry
	// upgraded are the names of the Update managers that own the annotation of client-side apply.
	upgraded map[string]bool
}

type managedEntry struct {
	manager
	// wroteIn is the apiVersion of the entry, for appliers too.
	wroteIn, time string
	// raw is the FieldsV1 of the entry, absent if there is none.
	raw rawjson.Value
	// fields is the result of set, nil until it is needed.
	fields *smdpath.Set
	// faulty: no API server writes such an entry.
	faulty bool
}

// readManagedFields reads the list. It reports false for a list that an API server would not write. It does not read FieldsV1: if an entry does not
// change, they need not be understood.
func readManagedFields(v rawjson.Value) (m *managedFields, ok bool) {
	m, ok = &managedFields{of: map[manager][]*managedEntry{}, upgraded: map[string]bool{}}, v.IsList() || v.IsAbsent() || v.Kind() == rawjson.Null
	for i := v.Items(); ok && i.Next(); {
		e := readManagedEntry(i.Value())
		ok = !e.faulty
		if m.of[e.manager] == nil {
			m.order = append(m.order, e.manager)
		}
		m.of[e.manager] = append(m.of[e.manager], e)
		if note := e.raw; e.operation == operationUpdate {
			for _, name := range lastApplied {
				note = note.Get("f:" + *name.FieldName)
			}
			if !note.IsAbsent() {
				m.upgraded[e.name] = true
			}
		}
	}
	return m, ok
}

func readManagedEntry(item rawjson.Value) *managedEntry {
	e, isV1 := &managedEntry{}, false
	for m := item.Members(); m.Next(); {
		v, into := m.Value(), (*string)(nil)
		switch m.Name().String() {
		case "manager":
			into = &e.name
		case "operation":
			into = &e.operation
		case "apiVersion":
			into = &e.wroteIn
		case "time":
			into = &e.time
		case "subresource":
			into = &e.subresource
		}
		switch {
		case v.Kind() == rawjson.Null: // An API server leaves it out.
		case m.Name().Is("fieldsType") && v.Is("FieldsV1"):
			isV1 = true
		case into != nil && v.Kind() == rawjson.String:
			*into = v.Text()
		case m.Name().Is("fieldsV1") && v.IsObject():
			e.raw = v
		default:
			e.faulty = true
		}
	}
	switch {
	case e.faulty || !isV1 || e.operation != operationUpdate && e.operation != operationApply:
		return &managedEntry{faulty: true}
	case e.operation == operationUpdate:
		e.version = e.wroteIn
	}
	return e
}

// set returns the paths that the entry owns, an empty set if there is no entry or it is faulty.
func (e *managedEntry) set() *smdpath.Set {
	if e == nil || e.faulty {
		return nothing
	}
	if e.fields == nil {
		fields, ok := readFields(e.raw)
		if !ok {
			fields = nothing
		}
		e.fields, e.faulty = fields, !ok
	}
	return e.fields
}

// isAged reports whether the entry has no time after the beginning of 1970. No API server writes such a time, and it reads such a time as
// no time.
func (e *managedEntry) isAged() bool {
	at, err := time.Parse(time.RFC3339, e.time)
	return err != nil || at.Unix() <= 0
}

// changedManagers returns the managers whose entries differ in more than their time, in the order of the lists.
func changedManagers(was, is *managedFields) []manager {
	var c rawjson.Comparison
	var out []manager
	for _, who := range was.order {
		if !slices.EqualFunc(was.of[who], is.of[who], func(a, b *managedEntry) bool { return a.wroteIn == b.wroteIn && c.Equal(a.raw, b.raw) }) {
			out = append(out, who)
		}
	}
	for _, who := range is.order {
		if !was.has(who) {
			out = append(out, who)
		}
	}
	return out
}

// keepLast keeps the last entry of each manager, as API servers do when they read the list. A write of the Scale may store two entries of
// one manager.
func (m *managedFields) keepLast() {
	for who, entries := range m.of {
		m.of[who] = entries[len(entries)-1:]
	}
}

// valid reports whether each of the managers has at most one entry, with a version and with fields that an API server would write.
func (m *managedFields) valid(managers []manager) bool {
	for _, who := range managers {
		if e := m.entry(who); e != nil {
			if e.set(); e.faulty || e.wroteIn == "" || len(m.of[who]) > 1 {
				return false
			}
		}
	}
	return true
}

// weight returns the weight, in bytes, of the paths of some managers.
func (m *managedFields) weight(managers []manager) (sum int) {
	for _, who := range managers {
		for _, e := range m.of[who] {
			sum += weigh(e.raw, 0)
		}
	}
	return sum
}

// entry returns the first entry of a manager, nil if there is none.
func (m *managedFields) entry(who manager) *managedEntry {
	if !m.has(who) {
		return nil
	}
	return m.of[who][0]
}

// has reports whether the manager has an entry.
func (m *managedFields) has(who manager) bool { return len(m.of[who]) > 0 }

// applies reports whether the next apply of a manager deletes the fields that the manager owns and no longer applies.
func (m *managedFields) applies(who manager) bool {
	return who.operation == operationApply || slices.Contains(clientSideAppliers, who.name) || m.upgraded[who.name]
}

// updates returns how many managers of operation Update there are.
func (m *managedFields) updates() (n int) {
	for _, who := range m.order {
		if who.operation == operationUpdate {
			n++
		}
	}
	return n
}
