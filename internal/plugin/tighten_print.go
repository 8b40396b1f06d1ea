package plugin

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fieldperm/fieldperm/internal/printable"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// say writes a line of output. It ignores errors of the write.
func (o *tightening) say(format string, args ...any) {
	_, _ = io.WriteString(o.streams.Out, printf(format, args...)+"\n")
}

func join(names []string) string { return strings.Join(names, ", ") }

// printProposal writes a proposal in the form of --output.
func (o *tightening) printProposal(p *tighten.Proposal, evidence *tighten.Evidence, proof *tighten.Proof) error {
	if o.output == outputHTML {
		return o.printPage(p, evidence, proof)
	}
	return o.printText(p, evidence, proof)
}

func (o *tightening) printText(p *tighten.Proposal, evidence *tighten.Evidence, proof *tighten.Proof) error {
	o.list("Evidence of the writes of "+p.Subject.String(), o.sources)
	o.say("")
	o.printEvidence(evidence)
	if o.hinted != nil {
		o.say("\nHints by managedFields, not in the proposal without --include-hints:")
		o.printEvidence(o.hinted)
	}
	diffs, err := p.Diffs()
	if err != nil {
		return err
	}
	if len(p.Change) == 0 {
		o.say("\nNothing to take away: the subject itself holds no update and no patch that granular verbs can replace.")
	} else {
		o.say("\nProposal: %d objects to add, then %d to change\n", len(p.Added()), len(p.Change))
		_, _ = io.WriteString(o.streams.Out, printableLines(diffs))
		var why []string
		for i := range p.Change {
			why = append(why, p.Change[i].Ref.String()+": "+p.Change[i].Why)
		}
		o.list("Changes", why)
	}
	o.list("Taken away without a replacement, because no write was seen", p.Unused)
	o.list("Lost besides update and patch; --allow-loss accepts it", p.Losses)
	o.list("Kept", p.Remaining)
	o.list("ConditionalPolicies that also decide, and are left as they are", p.Policies)
	o.list("Notes", p.Notes)
	switch {
	case !proof.Empty():
	case o.barriersUnknown():
		o.say("\nNo new access, if no barrier is concerned.")
	default:
		o.say("\nNo new access: what the subject holds without the proposal covers each of its rules.")
	}
	if o.barriersUnknown() {
		o.say("\n!!! %s !!!", noBarriers)
	}
	o.list("New access: not covered by what the subject holds without the proposal", proof.New)
	o.list("New access: objects that the subject may read, because the marker needs get; --allow-read accepts it", proof.Read)
	title := "Seen, and not covered by what the subject holds now; not in the proposal without --allow-new"
	if o.allowNew {
		title = "Seen, and not covered by what the subject holds now; in the proposal"
	}
	o.list(title, p.New)
	o.list("The proposal is incomplete", p.Gaps)
	return nil
}

// list writes a title and texts, nothing without texts.
func (o *tightening) list(title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	o.say("\n%s:", title)
	for _, text := range texts {
		o.say("- %s", text)
	}
}

// printEvidence writes a row for each verb.
func (o *tightening) printEvidence(evidence *tighten.Evidence) {
	w := tabwriter.NewWriter(o.streams.Out, 0, 0, 3, ' ', 0)
	t := evidenceTable("", evidence)
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i := range row {
			row[i] = printable.Text(row[i])
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
}

func date(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
