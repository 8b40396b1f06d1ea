package plugin

import (
	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// whoCanAnswer is the output of who-can as JSON and YAML. Its names are a contract.
type whoCanAnswer struct {
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Namespace is left out for a kind that is in no namespace, and for all namespaces.
	Namespace     string `json:"namespace,omitempty"`
	AllNamespaces bool   `json:"allNamespaces,omitempty"`
	// Name is left out for all objects.
	Name string `json:"name,omitempty"`
	// Field is the path as it was asked for, which may name an item of a list. Path is that in the kind, "" for the object itself.
	Field    string         `json:"field,omitempty"`
	Path     string         `json:"path"`
	Subjects []subjectEntry `json:"subjects"`
	// Verbs and Fields are there without --field.
	Verbs   []verbHolders  `json:"verbs,omitempty"`
	Fields  []fieldHolders `json:"fields,omitempty"`
	Notes   []string       `json:"notes"`
	Missing []missingEntry `json:"missing,omitempty"`
}

// subjectEntry is a subject that may change the field. How is that of its first way.
type subjectEntry struct {
	access.Subject
	How  access.How `json:"how"`
	Ways []wayEntry `json:"ways"`
}

// wayEntry is one way to change the field. By is generic, granular or wildcard. How is conditional if there are conditions, and else By.
type wayEntry struct {
	How        access.How       `json:"how"`
	By         access.How       `json:"by"`
	Verbs      []heldEntry      `json:"verbs"`
	Conditions []conditionEntry `json:"conditions,omitempty"`
}

// heldEntry is a verb with its grants, of which any is enough.
type heldEntry struct {
	Verb   string       `json:"verb"`
	Grants []grantEntry `json:"grants"`
}

// grantEntry is a binding with its role, or a ConditionalPolicy.
type grantEntry struct {
	Binding *nameEntry `json:"binding,omitempty"`
	Role    *nameEntry `json:"role,omitempty"`
	Policy  string     `json:"policy,omitempty"`
}

type nameEntry struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// conditionEntry is a condition with its text.
type conditionEntry struct {
	access.Condition
	Shown string `json:"shown"`
}

func newWhoCanAnswer(w *access.Write, field string, p *fieldtree.Place, rows []access.Row, notes []string, missing []sources.Missing) *whoCanAnswer {
	out := &whoCanAnswer{
		Verb: w.Verb, Group: w.Group, Version: w.Version, Kind: p.Kind.Kind, Resource: w.Resource, Subresource: w.Subresource,
		Namespace: w.Namespace, AllNamespaces: w.AllNamespaces, Name: w.Name, Field: field, Path: p.Path.String(), Subjects: subjectEntries(rows), Notes: notes,
	}
	out.Missing = missingEntries(missing)
	return out
}

func subjectEntries(rows []access.Row) []subjectEntry {
	out := []subjectEntry{}
	for i := range rows {
		one := subjectEntry{Subject: rows[i].Subject, How: rows[i].How()}
		for j := range rows[i].Ways {
			one.Ways = append(one.Ways, newWayEntry(&rows[i].Ways[j]))
		}
		out = append(out, one)
	}
	return out
}

func newWayEntry(w *access.Way) wayEntry {
	out := wayEntry{How: w.How(), By: w.By}
	for _, v := range w.Verbs {
		held := heldEntry{Verb: v.Verb}
		for _, g := range v.Grants {
			if g.Policy != "" {
				held.Grants = append(held.Grants, grantEntry{Policy: g.Policy})
				continue
			}
			held.Grants = append(held.Grants, grantEntry{Binding: newNameEntry(g.Binding), Role: newNameEntry(g.Role)})
		}
		out.Verbs = append(out.Verbs, held)
	}
	for _, c := range w.Conditions {
		out.Conditions = append(out.Conditions, conditionEntry{c, c.String()})
	}
	return out
}

func newNameEntry(n rbac.Name) *nameEntry { return &nameEntry{n.Kind, n.Namespace, n.Name} }
