package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// tightening are the flags of one call of tighten.
type tightening struct {
	options

	auditLogs    []string
	managers     []string
	includeHints bool
	groups       []string
	generalize   []string
	also         []string
	keepUpdate   []string
	resources    string
	namespaces   string
	names        string
	allowNew     bool
	allowRead    bool
	allowLoss    bool
	simulate     []string
	out          string

	// sources say what was read, in the order of reading.
	sources []string
	// samples are written objects with their UIDs, to recognize the log of another cluster.
	samples []sample
	// further are the verbs of also, and keep the resources of keepUpdate.
	further []tighten.Also
	keep    []tighten.Resource
	// hinted are the hints that are not in the evidence, nil without any.
	hinted *tighten.Evidence
}

// run makes a proposal and does with it what the flags say.
func (o *tightening) run(ctx context.Context, text string) error {
	subject, err := tighten.ParseSubject(text)
	if err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	if err := o.checkOut(); err != nil {
		return err
	}
	known, err := o.knownCluster(ctx)
	if err != nil {
		return err
	}
	if err := tighten.Unknown(&known.objects, subject); err != nil {
		return err
	}
	proposal, evidence, err := o.propose(ctx, subject, known)
	if err != nil {
		return err
	}
	proof := o.prove(proposal, known)
	if len(o.simulate) > 0 {
		return o.replay(ctx, proposal)
	}
	if err := o.printProposal(proposal, evidence, proof); err != nil {
		return err
	}
	if o.out != "" {
		if err := o.writeFiles(proposal, proof); err != nil {
			return err
		}
	}
	if !proposal.Complete() || !proof.Empty() || len(proposal.Losses) > 0 && !o.allowLoss {
		return ErrIncomplete
	}
	return nil
}

func (o *tightening) validate() error {
	if err := o.outputIs(outputText, outputHTML); err != nil {
		return err
	}
	if o.output == outputHTML && (o.out != "" || len(o.simulate) > 0) {
		return fmt.Errorf("--output %s is a page of the proposal: drop --out and --simulate, or drop --output", outputHTML)
	}
	for _, f := range []struct{ flag, value string }{{"resources", o.resources}, {"namespaces", o.namespaces}, {"names", o.names}} {
		if f.value != string(tighten.HeldReach) && f.value != string(tighten.Seen) {
			return fmt.Errorf("--%s %q is not known: use %s or %s", f.flag, f.value, tighten.HeldReach, tighten.Seen)
		}
	}
	for _, text := range o.also {
		one, err := tighten.ParseAlso(text)
		if err != nil {
			return err
		}
		o.further = append(o.further, one)
	}
	for _, text := range o.keepUpdate {
		r, err := tighten.ParseResource(text)
		if err != nil {
			return fmt.Errorf("--keep-update %w", err)
		}
		o.keep = append(o.keep, r)
	}
	stdin := 0
	for _, file := range append(append([]string{}, o.auditLogs...), o.simulate...) {
		if file == "-" {
			stdin++
		}
	}
	logs := slices.Sorted(slices.Values(o.auditLogs))
	for i := range logs {
		if i > 0 && logs[i] == logs[i-1] {
			return fmt.Errorf("--audit-log %q is given twice, and its writes would count twice: give it once", logs[i])
		}
	}
	switch {
	case stdin > 1:
		return errors.New("--audit-log and --simulate read standard input more than once: give files")
	case o.out != "" && len(o.simulate) > 0:
		return errors.New("--simulate replays a log and writes no files: drop it, or drop --out")
	case len(o.managers) > 0 && o.offline():
		return errors.New("--managed-fields reads live objects: drop --grants")
	case o.includeHints && len(o.managers) == 0:
		return errors.New("--include-hints has no hints: give --managed-fields")
	}
	return nil
}

// propose collects the evidence and makes the proposal.
func (o *tightening) propose(ctx context.Context, subject tighten.Subject, known *knownCluster) (*tighten.Proposal, *tighten.Evidence, error) {
	evidence, names := tighten.Observations(subject, known.observations)
	for _, name := range names {
		o.sources = append(o.sources, "PermissionObservation "+name)
	}
	evidence.Names = o.names == string(tighten.Seen)
	logs := &tighten.Evidence{Names: evidence.Names}
	gaps, err := o.readLogs(ctx, subject, o.auditLogs, func(ev *tighten.Event) {
		logs.Collect(ev)
		o.sample(ev)
	})
	if err != nil {
		return nil, nil, err
	}
	logs.Gaps = append(logs.Gaps, gaps...)
	if gap := known.otherCluster(ctx, o.samples); gap != "" {
		logs.Gaps = append(logs.Gaps, gap)
	}
	evidence.Merge(logs)
	if err := o.hints(ctx, subject, known, evidence); err != nil {
		return nil, nil, err
	}
	for _, name := range evidence.Generalize(o.generalize) {
		o.warn("--generalize %q: no verb in the evidence has this name", name)
	}
	if evidence.Empty() && len(evidence.Gaps) > 0 {
		return nil, nil, fmt.Errorf("the evidence has no write of %q: %s", subject, strings.Join(evidence.Gaps, "; "))
	}
	proposal, err := tighten.Propose(subject, &known.objects, evidence, tighten.Options{
		Namespaces: tighten.Reach(o.namespaces), Names: tighten.Reach(o.names), Resources: tighten.Reach(o.resources),
		Also: o.further, Keep: o.keep, AllowNew: o.allowNew, Groups: o.groups, Policies: known.policies, Decides: known.decides, Undecided: known.undecided, Barriers: known.barriers,
	})
	if err != nil {
		return nil, nil, err
	}
	if o.policiesUnknown() {
		proposal.Notes = append(proposal.Notes, noPolicies)
	}
	for _, text := range proposal.Pointless {
		o.warn("--also %s", text)
	}
	return proposal, evidence, nil
}
