package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// intents returns what the changes of a proposal will take away.
func (c *Client) intents(ctx context.Context, p *tighten.Proposal, st *stored) ([]taken, error) {
	others, err := othersOf(ctx, c.Records, st.subject)
	if err != nil {
		return nil, err
	}
	objects, err := rbac.ListBound(ctx, c.RBAC)
	if err != nil {
		return nil, err
	}
	var out []taken
	for i := range p.Change {
		t, err := c.intent(ctx, p.Subject, &p.Change[i], objects)
		if err != nil {
			return nil, err
		}
		// Another subject's call has written "false" in place of it.
		t.Autoupdate = t.Autoupdate || slices.ContainsFunc(others, func(r record) bool {
			return slices.ContainsFunc(r.Changed, func(other taken) bool { return other.identity == t.identity && other.Autoupdate })
		})
		out = append(out, *t)
	}
	return out, nil
}

func (c *Client) intent(ctx context.Context, s tighten.Subject, ch *tighten.Change, objects *rbac.Grants) (*taken, error) {
	meanwhile := func(ref tighten.Ref) error {
		return fmt.Errorf("%s changed while the proposal was made: run the command again", ref)
	}
	if ch.Role != nil {
		if tighten.Sharing(objects, ch.Ref, s) != "" {
			return nil, meanwhile(ch.Ref)
		}
		after := object{role: ch.RoleAfter}
		t := &taken{identity: identityOf(ch.Ref, ch.Role.UID), Rules: ch.Role.Rules, After: after.hash(), Autoupdate: ch.Role.Annotations[tighten.AutoupdateAnnotation] == "true"}
		for _, b := range tighten.Bindings(objects) {
			if b.Role == ch.Ref {
				t.Bindings = append(t.Bindings, identityOf(b.Ref, b.UID))
			}
		}
		return t, nil
	}
	t := &taken{
		identity: identityOf(ch.Ref, ch.Binding.UID), Subjects: takenFrom(ch.Binding.Subjects, ch.BindingAfter.Subjects),
		Autoupdate: ch.Binding.Annotations[tighten.AutoupdateAnnotation] == "true",
	}
	ref := tighten.Ref{Kind: ch.Binding.RoleRef.Kind, Name: ch.Binding.RoleRef.Name}
	if ref.Kind == roleKind {
		ref.Namespace = ch.Ref.Namespace
	}
	role, err := c.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if role == nil {
		return nil, meanwhile(ref)
	}
	of := identityOf(ref, role.meta().UID)
	t.Role, t.RoleHash = &of, role.hash()
	return t, nil
}

// recordable returns an error if the record would be too large after the last step.
func (st *stored) recordable(p *tighten.Proposal, intents []taken) error {
	all := record{Subject: st.Subject, Suffix: st.Suffix, Plan: plan(p), Added: slices.Clone(st.Added), Changed: slices.Clone(st.Changed)}
	const uid = "00000000-0000-0000-0000-000000000000"
	for _, named := range p.Added() {
		if all.added(named.Ref) == nil {
			all.Added = append(all.Added, made{identity: identityOf(named.Ref, uid), Hash: hash(), Next: hash()})
		}
	}
	for i := range intents {
		all.take(&intents[i])
	}
	_, err := all.text()
	return err
}

// take takes update and patch away. The record is written first. Each write fails if the object is not the one that the proposal was made
// from.
func (c *Client) take(ctx context.Context, p *tighten.Proposal, st *stored, intents []taken) error {
	for i := range intents {
		st.record.take(&intents[i])
	}
	if err := c.save(ctx, st); err != nil {
		return err
	}
	for i := range p.Change {
		ch := &p.Change[i]
		err := c.update(ctx, &object{ch.Ref, ch.RoleAfter, ch.BindingAfter})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return fmt.Errorf("%s changed while the proposal was made: run the command again", ch.Ref)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", ch.Ref, err)
		}
		c.Say("%s changed", ch.Ref)
	}
	return c.confirm(ctx, st)
}

// confirm gives update and patch back if the record was taken away meanwhile, because nothing could be restored later.
func (c *Client) confirm(ctx context.Context, st *stored) error {
	if c.DryRun {
		return nil
	}
	now, err := secretOf(ctx, c.Records, st.subject)
	if err != nil {
		return err
	}
	if now != nil && now.UID == st.secret.UID && now.ResourceVersion == st.secret.ResourceVersion {
		return nil
	}
	_, err = c.restore(context.WithoutCancel(ctx), st, true)
	return errors.Join(fmt.Errorf("update and patch were given back: %w", st.lost()), err)
}
