package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fieldperm/fieldperm/internal/tighten"
	"github.com/fieldperm/fieldperm/internal/tighten/apply"
)

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// letIn is how long kube-apiserver and fieldperm may take to see a change of Roles, on a large cluster.
const letIn = 20 * time.Second

// tightening are the flags of one call of tighten.
type tightening struct {
	options

	auditLogs      []string
	managers       []string
	includeHints   bool
	groups         []string
	generalize     []string
	also           []string
	keepUpdate     []string
	resources      string
	namespaces     string
	names          string
	allowNew       bool
	allowRead      bool
	allowLoss      bool
	simulate       []string
	apply, undo    bool
	dryRun         string
	forceUnproven  bool
	forceOverwrite bool

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
	if o.undo {
		return o.takeBack(ctx, subject)
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
	switch {
	case len(o.simulate) > 0:
		return o.replay(ctx, proposal)
	case o.apply:
		if err := o.refusal(proposal, proof); err != nil {
			return err
		}
		return o.applyStep(ctx, known, proposal, proof.New)
	}
	for _, b := range tighten.Foreign(proposal, &known.objects) {
		proof.New = append(proof.New, fmt.Sprintf("%s is not of the proposal and names %s: its subjects would get the rules", b.Ref, b.Role))
	}
	for _, a := range tighten.Aggregating(proposal, &known.objects) {
		proof.New = append(proof.New, fmt.Sprintf("%s is aggregated and selects %s: its subjects would get the rules", a.By, a.Role))
	}
	if err := o.printProposal(proposal, evidence, proof); err != nil {
		return err
	}
	if !proposal.Complete() || !proof.Empty() || len(proposal.Losses) > 0 && !o.allowLoss {
		return ErrIncomplete
	}
	return nil
}

// refusal returns why a proposal is not applied without a further flag.
func (o *tightening) refusal(p *tighten.Proposal, proof *tighten.Proof) error {
	switch {
	case len(proof.Read) > 0:
		return fmt.Errorf("the subject could read objects that it cannot read now: %s: look at it, then give --allow-read", strings.Join(proof.Read, "; "))
	case len(p.Losses) > 0 && !o.allowLoss:
		return fmt.Errorf("the subject would lose rights besides update and patch: %s: look at it, then give --allow-loss", strings.Join(p.Losses, "; "))
	}
	return nil
}

func (o *tightening) validate() error {
	if err := o.outputIs(outputText, outputJSON, outputYAML, outputHTML); err != nil {
		return err
	}
	if o.output == outputHTML && (o.apply || o.undo || len(o.simulate) > 0) {
		return fmt.Errorf("--output %s is a page of the proposal: drop --apply, --undo and --simulate, or drop --output", outputHTML)
	}
	for _, f := range []struct{ flag, value string }{{"resources", o.resources}, {"namespaces", o.namespaces}, {"names", o.names}} {
		if f.value != string(tighten.HeldReach) && f.value != string(tighten.Seen) {
			return fmt.Errorf("--%s %q is not known: use %s or %s", f.flag, f.value, tighten.HeldReach, tighten.Seen)
		}
	}
	switch o.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return fmt.Errorf("--dry-run %q is not known: use %s, %s or %s", o.dryRun, dryRunNone, dryRunClient, dryRunServer)
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
	writes := o.apply || o.undo
	switch {
	case stdin > 1:
		return errors.New("--audit-log and --simulate read standard input more than once: give files")
	case o.apply && o.undo:
		return errors.New("--apply and --undo exclude each other: give one of them")
	case writes && o.offline():
		return errors.New("--apply and --undo need a cluster: drop --grants")
	case writes && len(o.simulate) > 0:
		return errors.New("--simulate changes nothing: drop it, or drop --apply and --undo")
	case len(o.managers) > 0 && o.offline():
		return errors.New("--managed-fields reads live objects: drop --grants")
	case o.includeHints && len(o.managers) == 0:
		return errors.New("--include-hints has no hints: give --managed-fields")
	}
	return nil
}

// propose collects the evidence and makes the proposal.
func (o *tightening) propose(ctx context.Context, subject tighten.Subject, known *knownCluster) (*tighten.Proposal, *tighten.Evidence, error) {
	observations := known.observations
	if o.names == string(tighten.Seen) || o.namespaces == string(tighten.Seen) {
		observations = tighten.WithoutCovered(subject, observations)
	}
	evidence, names := tighten.Observations(subject, observations)
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
	// The objects to print have names that stay the same from run to run. Those that the command adds itself have names that others cannot
	// know beforehand.
	suffix, err := o.readRecord(ctx, known, subject)
	if err != nil {
		return nil, nil, err
	}
	proposal, err := tighten.Propose(subject, &known.objects, evidence, tighten.Options{
		Suffix:     suffix,
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

// readRecord notes the objects as they would be without --apply. It returns the end of the names of added objects: that of the record, or a
// new one for --apply.
func (o *tightening) readRecord(ctx context.Context, known *knownCluster, subject tighten.Subject) (suffix string, err error) {
	if known.before = &known.objects; known.client == nil {
		return "", nil
	}
	suffix, before, err := apply.Before(ctx, apply.Records(known.client), subject, &known.objects)
	switch {
	case apierrors.IsForbidden(err) && !o.apply:
		o.warn("what --apply has added is not known, and counts as held: %v", err)
	case err != nil:
		return "", err
	}
	known.before = before
	if suffix == "" && o.apply {
		suffix = apply.NewSuffix()
	}
	return suffix, nil
}

// applyStep makes the next step.
func (o *tightening) applyStep(ctx context.Context, known *knownCluster, proposal *tighten.Proposal, more []string) error {
	for _, loss := range proposal.Losses {
		o.say("Lost with the second step: %s", loss)
	}
	for _, policy := range proposal.Policies {
		o.say("Also decides: %s", policy)
	}
	if o.dryRun == dryRunClient {
		for _, added := range proposal.Added() {
			o.say("%s would be added in the first step", added.Ref)
		}
		for i := range proposal.Change {
			o.say("%s would be changed in the second step: %s", proposal.Change[i].Ref, proposal.Change[i].Why)
		}
		return nil
	}
	step, err := o.applier(known).Apply(ctx, proposal, more, apply.Options{
		Unproven: o.forceUnproven, New: o.allowNew, Version: known.version, Groups: o.groups,
	})
	var blocked *apply.BlockedError
	if errors.As(err, &blocked) {
		o.say("update and patch are not taken away yet:")
		for _, reason := range blocked.Reasons {
			o.say("- %s", reason)
		}
		o.say("--force-unproven takes them away all the same")
		return ErrBlocked
	}
	if err != nil {
		return err
	}
	switch {
	case o.dryRun == dryRunServer:
		o.say("Nothing was changed.")
	case step == apply.Added:
		o.say("Step 1 of 2 is done: %s holds the granular verbs besides update and patch.\nLet it make all of its writes, look at the observation, then run the command again:\n  kubectl get permissionobservation %s", proposal.Subject, proposal.Subject.ObservationName())
	case step == apply.Removed:
		o.say("Step 2 of 2 is done: %s holds granular verbs in place of update and patch. --undo gives them back.", proposal.Subject)
	default:
		o.say("Nothing to do: %s itself holds no update and no patch that granular verbs can replace.", proposal.Subject)
	}
	for _, remaining := range proposal.Remaining {
		o.say("It keeps %s", remaining)
	}
	return nil
}

// takeBack undoes what --apply did.
func (o *tightening) takeBack(ctx context.Context, subject tighten.Subject) error {
	known, err := o.connect(ctx)
	if err != nil {
		return err
	}
	applier := o.applier(known)
	if o.dryRun == dryRunClient {
		return errors.New("--undo with --dry-run client knows nothing of the objects: use --dry-run server")
	}
	done, err := applier.Undo(ctx, subject, o.forceOverwrite)
	if err != nil {
		return err
	}
	if done == 0 {
		o.say("Nothing to undo for %s: there is no record of an --apply.", subject)
	}
	return nil
}

func (o *tightening) applier(known *knownCluster) *apply.Client {
	return &apply.Client{RBAC: known.client, Records: apply.Records(known.client), Observations: known.observed, DryRun: o.dryRun == dryRunServer, LetIn: letIn, Say: func(format string, args ...any) {
		if o.dryRun == dryRunServer {
			format += " (dry run)"
		}
		o.say(format, args...)
	}}
}
