package plugin

import (
	"fmt"
	"strings"

	"github.com/fieldperm/fieldperm/internal/anyvalue"
	"github.com/fieldperm/fieldperm/internal/page"
)

// permissionAnswer is the output of can-i as JSON and YAML. Its names are a contract: they do not change.
type permissionAnswer struct {
	User        string `json:"user"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Version     string `json:"version"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	// Fields has an answer for each field. With --list a field that is not there has the answer of the nearest field above, and no if there is none.
	Fields  []permissionEntry `json:"fields"`
	Missing []missingEntry    `json:"missing,omitempty"`
}

type permissionEntry struct {
	// Path is "" for the object itself.
	Path string `json:"path"`
	// Answer is yes, no or depends.
	Answer string `json:"answer"`
	// By is the verb that covers the field.
	By string `json:"by,omitempty"`
	// Why is what the answer depends on, or why it is no.
	Why string `json:"why,omitempty"`
	// Needs are the verbs that would cover the field, and Entry are those of which one lets the user write the object at all.
	Needs []string `json:"needs,omitempty"`
	Entry []string `json:"entry,omitempty"`
}

func (o *permission) print(s *situation, rows []anyvalue.Row) error {
	on := s.kind.Tree.ResourceName()
	if s.of.kind.Group != "" {
		on = s.of.resource + "." + s.of.kind.Group + strings.TrimPrefix(on, s.of.resource)
	}
	switch {
	case o.output == outputJSON || o.output == outputYAML:
		out, err := encoded(s.answer(o.verb, on, rows), o.output)
		if err != nil {
			return err
		}
		return o.write(out)
	case o.output == outputText && len(rows) == 1 && !o.list:
		return o.write([]byte(printf("%s\n", o.sentence(s, &rows[0].Answer, on))))
	case o.output == outputText && len(rows) == 0:
		return o.write([]byte(printf("%s may not change any field of %s/%s.\n", s.caller.user.GetName(), on, s.base.Name)))
	}
	return o.writeTables(fmt.Sprintf("What %s may change by %s in %s/%s", s.caller.user.GetName(), o.verb, on, s.base.Name), page.Notes{Lacks: s.caller.notes()}, o.table(rows, on))
}

// sentence returns the answer about one field.
func (o *permission) sentence(s *situation, a *anyvalue.Answer, on string) string {
	out := a.Sentence(on)
	if a.Outcome == anyvalue.Depends && !s.hasValue && s.caller.undecided() == "" {
		out += ": give --value"
	}
	return out
}

func (o *permission) table(rows []anyvalue.Row, on string) page.Table {
	out := page.Table{Columns: []string{"FIELD", "ANSWER", "BY", "WHY"}}
	for i := range rows {
		a := &rows[i].Answer
		out.Rows = append(out.Rows, []string{pathOrObject(rows[i].Path), a.Outcome.String(), a.By, a.Reason(on)})
	}
	return out
}

// pathOrObject returns a path, "." for the object itself.
func pathOrObject(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func (s *situation) answer(verb, on string, rows []anyvalue.Row) *permissionAnswer {
	out := &permissionAnswer{
		User: s.caller.user.GetName(), Verb: verb, Group: s.of.kind.Group, Version: s.of.kind.Version, Resource: s.of.resource,
		Subresource: s.of.subresource, Namespace: s.base.Namespace, Name: s.base.Name, Fields: []permissionEntry{},
	}
	for i := range rows {
		a := &rows[i].Answer
		out.Fields = append(out.Fields, permissionEntry{rows[i].Path, a.Outcome.String(), a.By, a.Reason(on), a.Needs, a.Entry})
	}
	out.Missing = missingEntries(s.caller.missing)
	return out
}
