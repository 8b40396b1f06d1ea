package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// wanted is an object to add.
type wanted struct {
	*object
	// live is what is there, nil if there is nothing.
	live *object
	// entry is that of the record.
	entry *made
	// isNew says that the record has not had it before this call, written that this call has written it.
	isNew, written bool
}

func (w *wanted) done() bool { return w.live != nil && w.entry.Next == "" }

// add creates the objects to add, and corrects roles of an earlier step. It reports whether anything was to be done. While objects are being
// added, the observation has no warnings, and the record has none: that says that the step is not complete.
func (c *Client) add(ctx context.Context, p *tighten.Proposal, st *stored) (bool, error) {
	items, err := c.look(ctx, p, st)
	if err != nil {
		return false, err
	}
	if err := c.foreign(ctx, p); err != nil {
		return false, err
	}
	todo := st.observation == nil || !warns(p, st.observation) || observedBy(st.observation) != st.Observed
	for _, w := range items {
		todo = todo || !w.done()
	}
	if !todo {
		return false, nil
	}
	st.Observed = observed{}
	if err := c.save(ctx, st); err != nil {
		return true, err
	}
	if err := c.observe(ctx, st, prepare(p)); err != nil {
		return true, err
	}
	err = c.writeAll(ctx, items)
	if foreign := c.foreign(ctx, p); foreign != nil {
		return true, errors.Join(err, foreign, c.takeBack(context.WithoutCancel(ctx), items))
	}
	if err != nil {
		return true, err
	}
	if err := c.save(ctx, st); err != nil {
		// Without the record, --undo would not find what was added.
		if lost := (&lostError{}); errors.As(err, &lost) {
			err = errors.Join(err, c.takeBack(context.WithoutCancel(ctx), items))
		}
		return true, err
	}
	if err := c.observe(ctx, st, warn(p)); err != nil {
		return true, err
	}
	if !c.DryRun {
		st.Observed = observedBy(st.observation)
		if err := c.save(ctx, st); err != nil {
			return true, err
		}
	}
	c.Say("PermissionObservation %s started", p.Subject.ObservationName())
	return true, nil
}

// look compares what is to be added with what the record and the cluster have, and notes in the record what is about to be written.
func (c *Client) look(ctx context.Context, p *tighten.Proposal, st *stored) ([]*wanted, error) {
	var items []*wanted
	for _, named := range p.Added() {
		for _, other := range items {
			if other.ref == named.Ref {
				return nil, fmt.Errorf("%s is twice in the proposal: rename one of the roles or bindings that it is a copy of", named.Ref)
			}
		}
		live, err := c.get(ctx, named.Ref)
		if err != nil {
			return nil, err
		}
		w := &wanted{object: objectOf(named), live: live, isNew: st.added(named.Ref) == nil}
		items = append(items, w)
		if w.isNew {
			st.Added = append(st.Added, made{identity: identityOf(named.Ref, "")})
		}
	}
	for _, w := range items {
		w.entry = st.added(w.ref)
		if err := w.compare(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// compare brings the entry of the record up to date.
func (w *wanted) compare() error {
	e, sum := w.entry, w.hash()
	switch {
	case w.live == nil && e.UID != "":
		return fmt.Errorf("%s was added and is gone, so that the subject may have lost rights on purpose: run with --undo, then with --apply", w.ref)
	case w.live == nil:
		e.Hash, e.Next = sum, ""
		return nil
	case w.isNew:
		return fmt.Errorf("%s exists and was not made by --apply: delete it, or run with --undo, then with --apply", w.ref)
	case !e.is(w.live), w.binding != nil && w.live.hash() != sum:
		return fmt.Errorf("%s is not as --apply made it: another has changed or replaced it: look at it, then run with --undo and with --apply again", w.ref)
	}
	e.UID, e.Hash, e.Next = w.live.meta().UID, w.live.hash(), ""
	if e.Hash != sum {
		e.Next = sum
	}
	return nil
}

// writeAll makes the writes that the record has announced.
func (c *Client) writeAll(ctx context.Context, items []*wanted) error {
	for _, w := range items {
		if w.done() {
			continue
		}
		var err error
		if w.live == nil {
			w.entry.UID, err = c.create(ctx, w.object)
		} else {
			next := &object{ref: w.ref, role: w.live.role.DeepCopy()}
			next.role.Rules = w.role.Rules
			err = c.update(ctx, next)
		}
		switch {
		case apierrors.IsAlreadyExists(err):
			return fmt.Errorf("%s was made by another at the same time: delete it, then run the command again", w.ref)
		case apierrors.IsConflict(err), apierrors.IsNotFound(err) && w.live != nil:
			return fmt.Errorf("%s was changed by another at the same time: run the command again", w.ref)
		case err != nil:
			return fmt.Errorf("%s: %w", w.ref, err)
		}
		w.written, w.entry.Hash, w.entry.Next = true, w.hash(), ""
		c.Say("%s added", w.ref)
	}
	return nil
}

// foreign returns an error if a binding that is not the proposal's names a role that it adds, or if an aggregated ClusterRole selects one.
func (c *Client) foreign(ctx context.Context, p *tighten.Proposal) error {
	objects, err := rbac.ListBound(ctx, c.RBAC)
	if err != nil {
		return err
	}
	var faults []error
	for _, b := range tighten.Foreign(p, objects) {
		faults = append(faults, fmt.Errorf("%s is not of the proposal and binds %s to %s, which would give them its rules: delete it, or run with --undo, then run the command again", b.Ref, names(b.Subjects), b.Role))
	}
	for _, a := range tighten.Aggregating(p, objects) {
		faults = append(faults, fmt.Errorf("%s is aggregated and selects %s, which would give its rules to all that are bound to it, now %s: add {key: %s, operator: DoesNotExist} to matchExpressions of its clusterRoleSelectors, then run the command again", a.By, a.Role, names(a.Subjects), tighten.SubjectLabel))
	}
	return errors.Join(faults...)
}

// names returns the kinds and names of subjects.
func names(subjects []rbacv1.Subject) string {
	if len(subjects) == 0 {
		return "none"
	}
	var out []string
	for i := range subjects {
		out = append(out, fmt.Sprintf("%s %q", subjects[i].Kind, subjects[i].Name))
	}
	return strings.Join(out, ", ")
}

// takeBack takes the rules that this call has written from the added roles again.
func (c *Client) takeBack(ctx context.Context, items []*wanted) error {
	var faults []error
	for i := len(items) - 1; i >= 0; i-- {
		w := items[i]
		if !w.written {
			continue
		}
		if w.live == nil {
			done, err := c.remove(ctx, w.ref, w.entry.UID)
			if done {
				c.Say("%s deleted again", w.ref)
			}
			faults = append(faults, err)
			continue
		}
		now, err := c.get(ctx, w.ref)
		if err == nil && now != nil && now.meta().UID == w.live.meta().UID {
			now.role.Rules = w.live.role.Rules
			if err = c.update(ctx, now); err == nil {
				c.Say("%s has its earlier rules again", w.ref)
			}
		}
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("the rules could not be taken back: %w: run with --undo", err)
	}
	return nil
}
