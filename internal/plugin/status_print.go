package plugin

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fieldperm/fieldperm/internal/diagnosis"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/printable"
)

// stateWords are the states in a sentence.
func stateWords(s diagnosis.State) string {
	switch s {
	case diagnosis.Proven:
		return "proven"
	case diagnosis.NotProven:
		return "not proven"
	case diagnosis.NotInstalled:
		return "fieldperm is not installed"
	case diagnosis.Unknown:
	}
	return "unknown"
}

func (o *standing) print(s *diagnosis.Status) error {
	switch o.output {
	case outputJSON, outputYAML:
		text, err := encoded(s, o.output)
		if err != nil {
			return err
		}
		return o.write(text)
	case outputHTML:
		var notes []string
		for _, m := range s.Missing {
			notes = append(notes, fmt.Sprintf("This page lacks %s: %s.", m.What, m.Error))
		}
		return o.writeTables("Enforcement: "+stateWords(s.State), page.Notes{Lacks: notes}, append([]page.Table{summaryTable(s)}, statusTables(s)...)...)
	}
	t := &text{paint: paint{terminal(o.streams.Out) && os.Getenv("NO_COLOR") == ""}}
	words := stateWords(s.State)
	switch s.State {
	case diagnosis.Proven:
		words = t.paint.with("32", "✓ ", words)
	case diagnosis.NotProven, diagnosis.NotInstalled:
		words = t.paint.with("31", "✗ ", words)
	case diagnosis.Unknown:
		words = t.paint.with("33", "? ", words)
	}
	t.line("%s %s", t.paint.title("ENFORCEMENT:"), words)
	for _, row := range summaryTable(s).Rows[1:] {
		t.line("  %-12s %s", row[0]+":", printable.Text(row[1]))
	}
	if tables := statusTables(s); len(tables) > 0 {
		t.line("")
		t.WriteString(string(textOf(tables)))
	}
	return o.write([]byte(t.String()))
}

// summaryTable is what is known of the whole.
func summaryTable(s *diagnosis.Status) page.Table {
	t := page.Table{Columns: []string{"", ""}, Rows: [][]string{{"enforcement", stateWords(s.State)}, {"because", s.Reason}}}
	add := func(name, value string) { t.Rows = append(t.Rows, []string{name, value}) }
	if s.Since != nil {
		add("since", s.Since.UTC().Format(time.RFC3339))
	}
	if s.State == diagnosis.NotInstalled {
		add("install", installPage)
	}
	add("client", s.Versions.Client)
	if s.State != diagnosis.NotInstalled {
		add("webhook", cmp.Or(s.Versions.Webhook, "unknown"))
	}
	add("kubernetes", cmp.Or(s.Versions.Kubernetes, "unknown"))
	if len(s.Servers) > 0 {
		add("API servers", strings.Join(s.Servers, ", "))
	}
	return t
}

// statusTables returns the parts of the status that are not empty.
func statusTables(s *diagnosis.Status) []page.Table {
	causes := page.Table{Title: "MOST LIKELY CAUSES", Columns: []string{"CAUSE", "RUN"}}
	for _, c := range s.Causes {
		causes.Rows = append(causes.Rows, []string{c.Cause, c.Command})
	}
	replicas := page.Table{Title: "REPLICAS of fieldperm-webhook", Columns: []string{"POD", "NODE", "READY", "PROOF", "IMAGE", "RESTARTS", "MESSAGE"}}
	for _, r := range s.Replicas {
		proof, message := diagnosis.Unknown, r.Message
		for _, p := range s.Proofs {
			if p.Replica == r.Name {
				proof, message = p.State, cmp.Or(p.Message, message)
			}
		}
		replicas.Rows = append(replicas.Rows, []string{r.Name, r.Node, strconv.FormatBool(r.Ready), stateWords(proof), r.Image, strconv.Itoa(int(r.Restarts)), message})
	}
	events := page.Table{Title: "EVENTS, the last of each replica", Columns: []string{"REPLICA", "TIME", "PROOF", "CAUSE", "MESSAGE"}}
	for _, e := range s.Events {
		events.Rows = append(events.Rows, []string{e.Replica, e.Time.UTC().Format(time.RFC3339), stateWords(e.State), e.Cause, e.Message})
	}
	hooks := page.Table{Title: "WEBHOOKS", Columns: []string{"CONFIGURATION", "WEBHOOK", "FAILUREPOLICY", "CALLS", "CA VALID", "FAULT"}}
	for _, w := range s.Webhooks {
		hooks.Rows = append(hooks.Rows, []string{w.Configuration, w.Name, w.FailurePolicy, w.Calls, w.CA, w.Fault})
	}
	origins := page.Table{Title: "SOURCES", Columns: []string{"KIND", "NAME", "COMPILED", "ENFORCED", "REASON", "IN FORCE", "MESSAGE"}}
	for _, o := range s.Sources {
		origins.Rows = append(origins.Rows, []string{o.Kind, o.Name, o.Compiled, o.Enforced, o.Reason, o.InForce, o.Message})
	}
	var out []page.Table
	for _, t := range []page.Table{causes, replicas, events, hooks, origins} {
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}
