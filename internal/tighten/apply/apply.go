package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// Client changes the RBAC objects of a cluster.
type Client struct {
	RBAC kubernetes.Interface
	// Records are the Secrets with the records, as the function Records returns them.
	Records typedcorev1.SecretInterface
	// Observations are the PermissionObservations.
	Observations dynamic.ResourceInterface
	// DryRun sends every write as a dry run.
	DryRun bool
	// LetIn is how long kube-apiserver and fieldperm may take to see that update and patch are gone and that the marker is there.
	LetIn time.Duration
	// Say is called with each thing that was done.
	Say func(format string, args ...any)
}

// Options of Apply. The zero Options force nothing.
type Options struct {
	// Unproven takes update and patch away although the observation does not show that the subject does not need them.
	Unproven bool
	// New accepts new access.
	New bool
	// Version returns a version in which a resource is served, and Groups are those of a user, to ask whether its writes are let in.
	Version func(r tighten.Resource) string
	Groups  []string
}

// Step is what a call of Apply has done.
type Step int

const (
	// Nothing was left to do.
	Nothing Step = iota
	// Added Roles, bindings and an observation. Call Apply again when the subject has made its writes.
	Added
	// Removed update and patch.
	Removed
)

// BlockedError says why Apply does not take update and patch away yet.
type BlockedError struct{ Reasons []string }

// Error returns all reasons.
func (e *BlockedError) Error() string {
	return "update and patch are not taken away yet:\n" + strings.Join(e.Reasons, "\n")
}

// Apply makes the next step of a proposal, whose Suffix is the one in the record of the subject, or a new one. more is what it would grant
// besides what the subject holds without it.
func (c *Client) Apply(ctx context.Context, p *tighten.Proposal, more []string, options Options) (Step, error) {
	if more = slices.Concat(p.New, more); len(more) > 0 && !options.New {
		return Nothing, fmt.Errorf("the proposal is more than the subject holds without it, or less than it needs: %s: look at it, then give --allow-new", strings.Join(more, "; "))
	}
	if len(p.Change) == 0 {
		return Nothing, nil
	}
	st, err := c.load(ctx, p.Subject)
	if err != nil {
		return Nothing, err
	}
	if st == nil {
		st = &stored{record: record{Subject: p.Subject.String(), Suffix: p.Suffix, Plan: plan(p)}, subject: p.Subject}
	}
	if st.Suffix != p.Suffix {
		return Nothing, st.lost()
	}
	if err := st.unchanged(p); err != nil {
		return Nothing, err
	}
	intents, err := c.intents(ctx, p, st)
	if err != nil {
		return Nothing, err
	}
	if err := st.recordable(p, intents); err != nil {
		return Nothing, err
	}
	added, err := c.add(ctx, p, st)
	if err != nil {
		return Nothing, err
	}
	if added {
		return Added, nil
	}
	if reasons := slices.Concat(gate(st.observation), p.Gaps); len(reasons) > 0 && !options.Unproven {
		return Nothing, &BlockedError{reasons}
	}
	if err := c.take(ctx, p, st, intents); err != nil {
		return Nothing, err
	}
	if options.Unproven || c.DryRun {
		return Removed, nil
	}
	return Removed, c.proveLetIn(ctx, p, st, &options)
}
