package apply

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// Undo restores the roles and bindings that were changed for a subject, and then deletes what was added for it. It returns how many
// objects that were. overwrite restores a role too that another changed afterwards. Undo may be called again at any time.
func (c *Client) Undo(ctx context.Context, s tighten.Subject, overwrite bool) (int, error) {
	u, err := c.restore(ctx, s, overwrite)
	if err != nil {
		// The subject may still need what was added.
		return u.done, err
	}
	return u.done, errors.Join(u.deleteBindings(ctx), u.deleteRoles(ctx), u.deleteObservation(ctx))
}

// restore gives update and patch back.
func (c *Client) restore(ctx context.Context, s tighten.Subject, overwrite bool) (*undoing, error) {
	u := &undoing{
		Client: c, subject: s, overwrite: overwrite,
		changed: metav1.ListOptions{LabelSelector: changedLabel + s.ID()}, added: metav1.ListOptions{LabelSelector: tighten.SubjectLabel + "=" + s.ID()},
	}
	return u, errors.Join(u.restoreRoles(ctx), u.restoreBindings(ctx))
}

type undoing struct {
	*Client
	subject        tighten.Subject
	overwrite      bool
	changed, added metav1.ListOptions
	done           int
}

func (u *undoing) update() metav1.UpdateOptions { return metav1.UpdateOptions{DryRun: u.dryRun()} }

func (u *undoing) did(ref tighten.Ref, what string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s changed meanwhile: run the command again", ref)
	case err != nil:
		return fmt.Errorf("%s: %w", ref, err)
	}
	u.done++
	u.Say("%s %s", ref, what)
	return nil
}

func (u *undoing) restoreRoles(ctx context.Context) error {
	rbac := u.RBAC.RbacV1()
	clusterRoles, err := rbac.ClusterRoles().List(ctx, u.changed)
	if err != nil {
		return err
	}
	var faults []error
	for i := range clusterRoles.Items {
		r := &clusterRoles.Items[i]
		ref := tighten.Ref{Kind: "ClusterRole", Name: r.Name}
		rules, ok, err := u.rules(ref, &r.ObjectMeta, r.Rules)
		if ok && err == nil {
			r.Rules = rules
			_, err = rbac.ClusterRoles().Update(ctx, r, u.update())
			err = u.did(ref, "restored", err)
		}
		faults = append(faults, err)
	}
	roles, err := rbac.Roles("").List(ctx, u.changed)
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	for i := range roles.Items {
		r := &roles.Items[i]
		ref := tighten.Ref{Kind: "Role", Namespace: r.Namespace, Name: r.Name}
		rules, ok, err := u.rules(ref, &r.ObjectMeta, r.Rules)
		if ok && err == nil {
			r.Rules = rules
			_, err = rbac.Roles(r.Namespace).Update(ctx, r, u.update())
			err = u.did(ref, "restored", err)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// rules returns the rules of a role before the change, and removes the record from the metadata.
func (u *undoing) rules(ref tighten.Ref, meta *metav1.ObjectMeta, now []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, bool, error) {
	o, ok, err := record(ref, u.subject.ID(), meta)
	if !ok || err != nil {
		return nil, ok, err
	}
	sum, err := hash(now)
	if err != nil {
		return nil, true, err
	}
	if sum != o.After && !u.overwrite {
		return nil, true, fmt.Errorf("%s changed since --apply, and --undo would lose that: restore its rules by hand from its annotation %s%s, or give --force-overwrite", ref, originalAnnotation, u.subject.ID())
	}
	return o.Rules, true, nil
}

func (u *undoing) restoreBindings(ctx context.Context) error {
	rbac := u.RBAC.RbacV1()
	clusterBindings, err := rbac.ClusterRoleBindings().List(ctx, u.changed)
	if err != nil {
		return err
	}
	var faults []error
	for i := range clusterBindings.Items {
		b := &clusterBindings.Items[i]
		ref := tighten.Ref{Kind: "ClusterRoleBinding", Name: b.Name}
		o, ok, err := record(ref, u.subject.ID(), &b.ObjectMeta)
		if ok && err == nil {
			b.Subjects = putBack(b.Subjects, o.Subjects)
			_, err = rbac.ClusterRoleBindings().Update(ctx, b, u.update())
			err = u.did(ref, "restored", err)
		}
		faults = append(faults, err)
	}
	bindings, err := rbac.RoleBindings("").List(ctx, u.changed)
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		ref := tighten.Ref{Kind: "RoleBinding", Namespace: b.Namespace, Name: b.Name}
		o, ok, err := record(ref, u.subject.ID(), &b.ObjectMeta)
		if ok && err == nil {
			b.Subjects = putBack(b.Subjects, o.Subjects)
			_, err = rbac.RoleBindings(b.Namespace).Update(ctx, b, u.update())
			err = u.did(ref, "restored", err)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// only deletes an object if it is still the same.
func (u *undoing) only(meta *metav1.ObjectMeta) metav1.DeleteOptions {
	return metav1.DeleteOptions{DryRun: u.dryRun(), Preconditions: &metav1.Preconditions{UID: &meta.UID}}
}

func (u *undoing) deleteBindings(ctx context.Context) error {
	rbac := u.RBAC.RbacV1()
	var faults []error
	clusterBindings, err := rbac.ClusterRoleBindings().List(ctx, u.added)
	if err != nil {
		return err
	}
	for i := range clusterBindings.Items {
		b := &clusterBindings.Items[i]
		faults = append(faults, u.did(tighten.Ref{Kind: "ClusterRoleBinding", Name: b.Name}, "deleted", rbac.ClusterRoleBindings().Delete(ctx, b.Name, u.only(&b.ObjectMeta))))
	}
	bindings, err := rbac.RoleBindings("").List(ctx, u.added)
	if err != nil {
		return err
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		faults = append(faults, u.did(tighten.Ref{Kind: "RoleBinding", Namespace: b.Namespace, Name: b.Name}, "deleted", rbac.RoleBindings(b.Namespace).Delete(ctx, b.Name, u.only(&b.ObjectMeta))))
	}
	return errors.Join(faults...)
}

func (u *undoing) deleteRoles(ctx context.Context) error {
	rbac := u.RBAC.RbacV1()
	var faults []error
	clusterRoles, err := rbac.ClusterRoles().List(ctx, u.added)
	if err != nil {
		return err
	}
	for i := range clusterRoles.Items {
		r := &clusterRoles.Items[i]
		faults = append(faults, u.did(tighten.Ref{Kind: "ClusterRole", Name: r.Name}, "deleted", rbac.ClusterRoles().Delete(ctx, r.Name, u.only(&r.ObjectMeta))))
	}
	roles, err := rbac.Roles("").List(ctx, u.added)
	if err != nil {
		return err
	}
	for i := range roles.Items {
		r := &roles.Items[i]
		faults = append(faults, u.did(tighten.Ref{Kind: "Role", Namespace: r.Namespace, Name: r.Name}, "deleted", rbac.Roles(r.Namespace).Delete(ctx, r.Name, u.only(&r.ObjectMeta))))
	}
	return errors.Join(faults...)
}

func (u *undoing) deleteObservation(ctx context.Context) error {
	o, err := u.observation(ctx, u.subject)
	if err != nil || o == nil {
		return err
	}
	return u.did(tighten.Ref{Kind: "PermissionObservation", Name: o.Name}, "deleted", u.Observations.Delete(ctx, o.Name, u.only(&o.ObjectMeta)))
}
