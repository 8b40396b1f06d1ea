package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// verbHolders are the subjects that hold a verb of the kind.
type verbHolders struct {
	Verb     string         `json:"verb"`
	Subjects []subjectEntry `json:"subjects"`
}

// fieldHolders are the subjects that may change a field. A field without an entry has those of the nearest entry above it.
type fieldHolders struct {
	Path     string        `json:"path"`
	Subjects []holderEntry `json:"subjects"`
}

type holderEntry struct {
	Kind string     `json:"kind"`
	Name string     `json:"name"`
	How  access.How `json:"how"`
}

// holdersOf lists who holds each verb of the kind, without the verbs that no subject holds. Holders of "*" are listed once.
func holdersOf(c *access.Cluster, w *access.Write, k *fieldtree.Kind) []verbHolders {
	all := slices.Concat([]string{rbacv1.VerbAll}, genericVerbs, []string{verbs.Marker})
	var granular []string
	for verb := range k.Verbs() {
		base, _, ofOne := strings.Cut(verb, "(")
		if granular = append(granular, base); ofOne {
			granular = append(granular, c.Parameterized(w, base)...)
		}
	}
	slices.Sort(granular)
	out := []verbHolders{}
	for _, verb := range slices.Concat(all, slices.Compact(granular)) {
		if rows := c.Holders(w, verb); len(rows) > 0 {
			out = append(out, verbHolders{verb, subjectEntries(rows)})
		}
	}
	return out
}

func fieldEntriesOf(a *page.Access) []fieldHolders {
	out := []fieldHolders{}
	for _, path := range slices.Sorted(maps.Keys(a.Paths)) {
		one := fieldHolders{Path: path, Subjects: []holderEntry{}}
		for _, h := range a.Paths[path] {
			one.Subjects = append(one.Subjects, holderEntry{a.Subjects[h.Subject].Kind, a.Subjects[h.Subject].Name, access.How(h.How)})
		}
		out = append(out, one)
	}
	return out
}

// objectText names the objects of an answer.
func objectText(w *access.Write) string {
	name := w.Name
	if name == "" {
		name = "all " + w.Resource
	}
	switch {
	case w.AllNamespaces:
		return name + " of all namespaces"
	case w.Namespace != "" && w.Name != "":
		return w.Namespace + "/" + name
	case w.Namespace != "":
		return name + " of " + w.Namespace
	}
	return name
}

func verbsTable(all []verbHolders) page.Table {
	t := page.Table{Title: "Verbs, with the subjects that hold them", Columns: []string{"VERB", "SUBJECTS"}}
	for _, v := range all {
		var texts []string
		for _, s := range v.Subjects {
			texts = append(texts, holderText(s.Kind, s.String(), s.How))
		}
		t.Rows = append(t.Rows, []string{v.Verb, strings.Join(texts, ", ")})
	}
	return t
}

// fieldsTable leaves out the fields that the API server writes.
func fieldsTable(k *fieldtree.Kind, all []fieldHolders) page.Table {
	t := page.Table{Title: "Fields, with the subjects that may change them. A field that is not listed has those of the nearest one above it", Columns: []string{"FIELD", "SUBJECTS"}}
	for _, f := range all {
		if p, err := k.Find(f.Path); err == nil && p.Node().Role == schema.RoleServerWritten {
			continue
		}
		path := f.Path
		if path == "" {
			path = "(the object)"
		}
		var texts []string
		for _, s := range f.Subjects {
			texts = append(texts, holderText(s.Kind, s.Name, s.How))
		}
		if len(texts) == 0 {
			texts = []string{"(none)"}
		}
		t.Rows = append(t.Rows, []string{path, strings.Join(texts, ", ")})
	}
	return t
}

func holderText(kind, name string, how access.How) string {
	mark := ""
	switch how {
	case access.Wildcard:
		mark = " *"
	case access.Conditional:
		mark = " (conditional)"
	case access.Generic, access.Granular:
	}
	return fmt.Sprintf("%s %s%s", kind, name, mark)
}
