package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/printable"
	"github.com/fieldperm/fieldperm/internal/refusal"
)

func (o *asking) print(answers []whyAnswer) error {
	switch o.output {
	case outputJSON, outputYAML:
		text, err := encoded(map[string]any{"refusals": answers}, o.output)
		if err != nil {
			return err
		}
		return o.write(text)
	case outputHTML:
		var tables []page.Table
		for i := range answers {
			tables = append(tables, answers[i].tables()...)
		}
		return o.writeTables("Why a write was refused", page.Notes{}, tables...)
	}
	t := &text{paint: paint{terminal(o.streams.Out) && os.Getenv("NO_COLOR") == ""}}
	for i := range answers {
		if i > 0 {
			t.line("---")
		}
		if err := answers[i].text(t); err != nil {
			return err
		}
	}
	return o.write([]byte(t.String()))
}

// facts are what was refused, by what, in rows of two cells.
func (a *whyAnswer) facts() [][]string {
	var out [][]string
	add := func(name, value string) {
		if value != "" {
			out = append(out, []string{name, value})
		}
	}
	add("USER", a.User)
	add("GROUPS", strings.Join(a.Groups, ", "))
	add("ACTION", a.Verb)
	object := a.Resource
	if a.Name != "" {
		object += fmt.Sprintf(" %q", a.Name)
	}
	if a.Namespace != "" {
		object += fmt.Sprintf(" in namespace %q", a.Namespace)
	}
	add("OBJECT", object)
	field := a.Field
	if a.FieldCut {
		field += " (the message is cut here)"
	}
	if a.Change != "" {
		field += fmt.Sprintf(" (its %s)", a.Change)
	}
	add("FIELD", field)
	add("BY", a.by())
	if len(a.Needs) > 0 {
		needs := strings.Join(a.Needs, ", ")
		if a.OrGranular {
			needs += ", or granular with the verbs of every changed field"
		}
		add("NEEDS", map[bool]string{true: "any one of "}[len(a.Needs) > 1]+needs)
	}
	if a.Deny != nil {
		add("DENIED", fmt.Sprintf("%s by authorizer %q: %q", a.Deny.Verb, a.Deny.Authorizer, a.Deny.Reason))
	}
	for _, u := range a.Unmet {
		of := fmt.Sprintf("policy %q", u.Name)
		if u.Authorizer != "" {
			of = fmt.Sprintf("%q of authorizer %q", u.Name, u.Authorizer)
		}
		add("CONDITION", fmt.Sprintf("%s is not met: %q", of, u.Description))
	}
	add("ENTRY", a.Entry)
	add("REASON", a.Reason)
	return out
}

// by names the component that refused.
func (a *whyAnswer) by() string {
	switch {
	case a.Origin == refusal.FromAuthorization:
		return "the authorizers of kube-apiserver, before admission"
	case a.Origin == refusal.FromFailure:
		return "a failure of webhook " + a.Webhook
	case a.Webhook == "granular.fieldperm.dev":
		return "fieldperm, webhook granular.fieldperm.dev: the user holds no generic permission there"
	case a.Webhook == "uncovered.fieldperm.dev":
		return "fieldperm, webhook uncovered.fieldperm.dev: a barrier"
	case a.Webhook != "":
		return "webhook " + a.Webhook
	}
	return "fieldperm"
}

func (a *whyAnswer) text(t *text) error {
	for _, row := range a.facts() {
		t.line("%s%s", t.paint.title(fmt.Sprintf("%-11s", row[0]+":")), printable.Text(row[1]))
	}
	for _, c := range a.Causes {
		rule := ""
		if c.Rule != "" {
			rule = " (rule " + c.Rule + ")"
		}
		t.line("\n%s %s%s.\n  %s", t.paint.title("WHY:"), printable.Text(c.Why), rule, t.paint.power("Do: "+printable.Text(c.Do)+"."))
	}
	if a.Grant == nil {
		t.line("\n%s %s.", t.paint.title("NO GRANT:"), printable.Text(a.NoGrant))
		return nil
	}
	t.line("\n%s the least that would lift this refusal:", t.paint.title("GRANT,"))
	for _, note := range a.Notes {
		t.line("# %s.", printable.Text(note))
	}
	objects, err := a.manifest()
	if err != nil {
		return err
	}
	t.WriteString(objects)
	if len(a.Grantors) > 0 {
		t.line("\n%s RBAC lets each grant only what it holds itself, unless it may grant anything:", t.paint.title("COULD GRANT IT,"))
		t.WriteString(string(textOf([]page.Table{a.grantors()})))
	}
	return nil
}

// manifest returns the objects of the grant as YAML documents, in which every character is printable.
func (a *whyAnswer) manifest() (string, error) {
	var out bytes.Buffer
	for i, object := range a.Grant.Objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		raw, err := json.Marshal(object)
		if err != nil {
			return "", err
		}
		document, err := yamlOf(printable.JSON(raw))
		if err != nil {
			return "", err
		}
		out.Write(document)
	}
	return out.String(), nil
}

func (a *whyAnswer) grantors() page.Table {
	t := page.Table{Columns: []string{"KIND", "NAME", "MAY CHANGE", "ANYTHING"}}
	for _, g := range a.Grantors {
		t.Rows = append(t.Rows, []string{g.Kind, g.Name, strings.Join(g.May, ", "), map[bool]string{true: "yes", false: "no"}[g.Anything]})
	}
	return t
}

func (a *whyAnswer) tables() []page.Table {
	facts := page.Table{Title: "Refusal", Columns: []string{"", ""}, Rows: a.facts()}
	causes := page.Table{Title: "Why", Columns: []string{"CHECK", "WHY", "DO", "RULE"}}
	for _, c := range a.Causes {
		causes.Rows = append(causes.Rows, []string{string(c.Check), c.Why, c.Do, c.Rule})
	}
	out := []page.Table{facts, causes}
	if a.Grant != nil {
		grant := page.Table{Title: "The least grant", Columns: []string{"OBJECT"}}
		if objects, err := a.manifest(); err == nil {
			for document := range strings.SplitSeq(objects, "---\n") {
				grant.Rows = append(grant.Rows, []string{document})
			}
		}
		out = append(out, grant)
	}
	if len(a.Grantors) > 0 {
		who := a.grantors()
		who.Title = "Could grant it"
		out = append(out, who)
	}
	return out
}
