package plugin

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/fieldperm/fieldperm/internal/needs"
	"github.com/fieldperm/fieldperm/internal/page"
)

// diffAnswer is the output of diff as JSON and YAML. Its names are a contract: they do not change, and lists are never null.
type diffAnswer struct {
	// User is the user that the answer is about.
	User    string         `json:"user"`
	Allowed bool           `json:"allowed"`
	Objects []objectAnswer `json:"objects"`
	// Roles are the objects to ask an administrator for.
	Roles   []any          `json:"roles"`
	Missing []missingEntry `json:"missing,omitempty"`
	// Errors are about objects that could not be compared.
	Errors []string `json:"errors,omitempty"`
}

type objectAnswer struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Operation is create or update.
	Operation string `json:"operation"`
	// Result is dryRun if the API server returned the result, computed if it refused to.
	Result  string `json:"result"`
	Allowed bool   `json:"allowed"`
	// Requests are the verbs that let the request in.
	Requests []requestEntry `json:"requests"`
	Changes  []changeEntry  `json:"changes"`
	// Ask are the verbs to ask for.
	Ask []string `json:"ask"`
	// Enough means that the write is allowed with them. Reasons say why not.
	Enough  bool     `json:"enough"`
	Reasons []string `json:"reasons,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

type requestEntry struct {
	Needs []string `json:"needs"`
	Held  string   `json:"held"`
}

type changeEntry struct {
	Path string `json:"path"`
	// Operation is modified, added, removed, reordered or ownership; apiServer for a change that only the API server saw.
	Operation string   `json:"operation"`
	Needs     []string `json:"needs"`
	Held      string   `json:"held"`
	Instead   string   `json:"instead,omitempty"`
}

// onlyAPIServer is the operation of changes that only the API server saw.
const onlyAPIServer = "apiServer"

func (o *difference) print(found []*written, failed error) error {
	rules := rulesOf(found)
	roles := needs.Objects(o.bound(), rules)
	switch o.output {
	case outputJSON, outputYAML:
		answer := o.answer(found, roles)
		if failed != nil {
			answer.Allowed, answer.Errors = false, strings.Split(failed.Error(), "\n")
		}
		out, err := encoded(answer, o.output)
		if err != nil {
			return err
		}
		return o.write(out)
	case outputRole:
		o.sayOf(found)
		out, err := manifestsOf(roles)
		if err != nil {
			return err
		}
		return o.write(out)
	}
	tables := tablesOf(found, o.output == outputHTML)
	if o.output == outputHTML {
		if len(rules) > 0 {
			tables = append(tables, tableOfRules(rules))
		}
		return o.writeTables("What an apply changes", page.Notes{Lacks: o.caller.notes(), Facts: sentencesOf(found)}, tables...)
	}
	if len(tables[0].Rows) > 0 {
		if err := o.writeTables("", page.Notes{}, tables...); err != nil {
			return err
		}
	}
	o.sayOf(found)
	if len(roles) == 0 {
		return nil
	}
	out, err := manifestsOf(roles)
	if err != nil {
		return err
	}
	return o.write(append([]byte("\nAsk the administrator for:\n"), out...))
}

// sayOf writes what is said about objects beside the table, to standard error.
func (o *difference) sayOf(found []*written) {
	for _, sentence := range sentencesOf(found) {
		o.warn("%s", sentence)
	}
}

// bound is the user as the subject of a binding.
func (o *difference) bound() rbacv1.Subject {
	name := o.caller.user.GetName()
	if namespace, account, err := serviceaccount.SplitUsername(name); err == nil {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func rulesOf(found []*written) []needs.Rules {
	var grants []needs.Grant
	for _, a := range found {
		if len(a.answer.Ask) > 0 {
			grants = append(grants, a.grant())
		}
	}
	return needs.RulesOf(grants)
}

// manifestsOf returns objects as a manifest in YAML.
func manifestsOf(objects []any) ([]byte, error) {
	var out bytes.Buffer
	for i, object := range objects {
		text, err := encoded(object, outputYAML)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// maxNeeds is how many verbs of a change a table on a terminal shows, because long rows are hard to read.
const maxNeeds = 3

// needsText returns the verbs of which one is needed: as a text of a terminal the most specific ones.
func needsText(verbs []string, all bool) string {
	if all || len(verbs) <= maxNeeds+1 {
		return strings.Join(verbs, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(verbs[:maxNeeds], ", "), len(verbs)-maxNeeds)
}

// tablesOf returns the table of all changes, with all verbs of each or with the most specific ones.
func tablesOf(found []*written, all bool) []page.Table {
	t := page.Table{Columns: []string{"OBJECT", "FIELD", "CHANGE", "NEEDS ONE OF", "HELD"}}
	for _, a := range found {
		name := nameOf(a.info)
		row := func(field, change, verbs, held string) {
			if held == "" {
				held = "no"
			}
			t.Rows = append(t.Rows, []string{name, field, change, verbs, held})
		}
		for _, e := range a.answer.Entries {
			change := a.operation
			if e.Verb == "get" {
				change = "read"
			}
			row("(request)", change, entryNeeds(e), e.Held)
		}
		for i := range a.answer.Changes {
			c := &a.answer.Changes[i]
			row(pathText(c.Path), c.Operation, needsText(c.Needs, all), c.Held)
		}
		for i := range a.seen {
			c := &a.seen[i]
			row(pathText(c.Path), "by API server", needsText(c.Needs, all), c.Held)
		}
	}
	return []page.Table{t}
}

func pathText(path string) string {
	if path == "" {
		return "(object)"
	}
	return path
}

func tableOfRules(all []needs.Rules) page.Table {
	t := page.Table{Title: "Ask the administrator for", Columns: []string{"NAMESPACE", "RESOURCE", "NAMES", "VERBS"}}
	for _, r := range all {
		for _, rule := range r.Rules {
			resource := strings.TrimSuffix(rule.Resources[0]+"."+rule.APIGroups[0], ".")
			names := strings.Join(rule.ResourceNames, ", ")
			if names == "" {
				names = "all"
			}
			t.Rows = append(t.Rows, []string{r.Namespace, resource, names, strings.Join(rule.Verbs, ", ")})
		}
	}
	return t
}

// sentencesOf returns what is said about objects, objects with equal sentences together.
func sentencesOf(found []*written) []string {
	var sentences []string
	about := map[string][]string{}
	add := func(a *written, text string) {
		if about[text] == nil {
			sentences = append(sentences, text)
		}
		about[text] = append(about[text], nameOf(a.info))
	}
	for _, a := range found {
		if a.refusal != "" {
			add(a, fmt.Sprintf("the API server refuses the request, and verbs do not explain it: %s", a.refusal))
		}
		for _, reason := range a.answer.Uncured {
			add(a, "the role is not enough: "+reason)
		}
		for i := range a.answer.Changes {
			if c := &a.answer.Changes[i]; c.Held == "" && c.Instead != "" {
				add(a, pathText(c.Path)+": "+c.Instead)
			}
		}
		for _, note := range a.notes {
			add(a, note)
		}
	}
	for i, text := range sentences {
		names := slices.Compact(about[text])
		more := ""
		if len(names) > 3 {
			names, more = names[:3], fmt.Sprintf(" and %d more", len(names)-3)
		}
		sentences[i] = strings.Join(names, ", ") + more + ": " + text
	}
	return sentences
}

func (o *difference) answer(found []*written, roles []any) *diffAnswer {
	out := &diffAnswer{User: o.caller.user.GetName(), Allowed: true, Objects: []objectAnswer{}, Roles: append([]any{}, roles...)}
	for _, a := range found {
		out.Allowed = out.Allowed && a.allowed()
		of := a.info.Mapping
		object := objectAnswer{
			Group: of.GroupVersionKind.Group, Version: of.GroupVersionKind.Version, Kind: of.GroupVersionKind.Kind, Resource: of.Resource.Resource,
			Namespace: a.info.Namespace, Name: a.info.Name, Operation: a.operation, Result: "dryRun", Allowed: a.allowed(),
			Requests: []requestEntry{}, Changes: []changeEntry{}, Ask: append([]string{}, a.answer.Ask...), Enough: a.unchanged || a.answer.Enough, Notes: a.notes,
			Reasons: a.answer.Uncured,
		}
		if a.computed {
			object.Result = "computed"
		}
		if a.refusal != "" {
			object.Enough = false
			object.Reasons = append(slices.Clone(object.Reasons), a.refusal)
		}
		for _, e := range a.answer.Entries {
			object.Requests = append(object.Requests, requestEntry{strings.Split(entryNeeds(e), ", "), e.Held})
		}
		for i := range a.answer.Changes {
			c := &a.answer.Changes[i]
			object.Changes = append(object.Changes, changeEntry{c.Path, c.Operation, append([]string{}, c.Needs...), c.Held, c.Instead})
		}
		for i := range a.seen {
			c := &a.seen[i]
			object.Changes = append(object.Changes, changeEntry{c.Path, onlyAPIServer, c.Needs, c.Held, ""})
		}
		out.Objects = append(out.Objects, object)
	}
	for _, m := range o.caller.traced.missing {
		out.Allowed = false
		out.Missing = append(out.Missing, missingEntry{m.What, m.Err.Error()})
	}
	return out
}
