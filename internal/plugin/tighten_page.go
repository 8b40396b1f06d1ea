package plugin

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// printPage writes a proposal as a page: the evidence, the objects with their rules, and what else to know. What makes the proposal
// incomplete stands above all.
func (o *tightening) printPage(p *tighten.Proposal, evidence *tighten.Evidence, proof *tighten.Proof) error {
	notes := slices.Clone(p.Gaps)
	if o.barriersUnknown() {
		notes = append(notes, noBarriers)
	}
	if o.policiesUnknown() {
		notes = append(notes, noPolicies)
	}
	tables := []page.Table{evidenceTable("Evidence of the writes", evidence)}
	if o.hinted != nil {
		tables = append(tables, evidenceTable("Hints by managedFields, not in the proposal without --include-hints", o.hinted))
	}
	tables = append(tables, objectsTable(p), rulesTable(p), o.findingsTable(p, proof))
	return o.writeTables("Granular verbs in place of update and patch: "+p.Subject.String(), page.Notes{Lacks: notes}, tables...)
}

// evidenceTable has a row for each verb.
func evidenceTable(title string, evidence *tighten.Evidence) page.Table {
	t := page.Table{Title: title, Columns: []string{"RESOURCE", "VERB", "COUNT", "FIRST", "LAST", "EXAMPLE", "SOURCE"}}
	for _, r := range slices.SortedFunc(maps.Keys(evidence.Resources), func(a, b tighten.Resource) int { return strings.Compare(a.String(), b.String()) }) {
		uses := evidence.Resources[r].Verbs
		for _, verb := range slices.Sorted(maps.Keys(uses)) {
			u := uses[verb]
			t.Rows = append(t.Rows, []string{r.String(), verb, strconv.FormatInt(u.Count, 10), date(u.First), date(u.Last), u.Example.String(), join(u.Sources)})
		}
	}
	return t
}

func objectsTable(p *tighten.Proposal) page.Table {
	t := page.Table{Title: "Proposal: objects to add, then to change", Columns: []string{"STEP", "OBJECT", "WHY"}}
	for _, added := range p.Added() {
		t.Rows = append(t.Rows, []string{"add", added.Ref.String(), ""})
	}
	for i := range p.Change {
		t.Rows = append(t.Rows, []string{"change", p.Change[i].Ref.String(), p.Change[i].Why})
	}
	return t
}

// rulesTable has the rules of all roles of the proposal, as they are after it.
func rulesTable(p *tighten.Proposal) page.Table {
	t := page.Table{Title: "Rules of these roles", Columns: []string{"ROLE", "GROUPS", "RESOURCES", "NAMES", "VERBS"}}
	add := func(role string, rules []rbacv1.PolicyRule) {
		for i := range rules {
			r := &rules[i]
			t.Rows = append(t.Rows, []string{role, join(groupNames(r.APIGroups)), join(slices.Concat(r.Resources, r.NonResourceURLs)), join(r.ResourceNames), join(r.Verbs)})
		}
	}
	for _, added := range p.Added() {
		switch role := added.Object.(type) {
		case *rbacv1.ClusterRole:
			add(added.Ref.String(), role.Rules)
		case *rbacv1.Role:
			add(added.Ref.String(), role.Rules)
		}
	}
	for i := range p.Change {
		if after := p.Change[i].RoleAfter; after != nil {
			add(p.Change[i].Ref.String(), after.Rules)
		}
	}
	return t
}

// groupNames returns API groups with the name of the core group.
func groupNames(groups []string) []string {
	out := slices.Clone(groups)
	for i, group := range out {
		if group == "" {
			out[i] = "core"
		}
	}
	return out
}

// findingsTable has the lists that the text has below the proposal.
func (o *tightening) findingsTable(p *tighten.Proposal, proof *tighten.Proof) page.Table {
	t := page.Table{Title: "What else to know", Columns: []string{"WHAT", "TEXT"}}
	seen := "seen, and not covered now; not in the proposal without --allow-new"
	if o.allowNew {
		seen = "seen, and not covered now; in the proposal"
	}
	for _, list := range []struct {
		what  string
		texts []string
	}{
		{"new access", proof.New},
		{"new access to read; --allow-read accepts it", proof.Read},
		{"lost besides update and patch; --allow-loss accepts it", p.Losses},
		{"taken away without a replacement", p.Unused},
		{seen, p.New},
		{"kept", p.Remaining},
		{"also decides, and is left as it is", p.Policies},
		{"note", p.Notes},
		{"source of the evidence", o.sources},
	} {
		for _, text := range list.texts {
			t.Rows = append(t.Rows, []string{list.what, text})
		}
	}
	return t
}
