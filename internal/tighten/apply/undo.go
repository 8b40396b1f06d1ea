package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// Undo restores the roles and bindings that the record of a subject has, and then deletes what was added for it, and the record. It returns
// how many objects that were. It does not restore an object that another has changed since, unless overwrite is set, and never one whose
// rights others would get. Then it keeps the record and what was added. Undo may be called again at any time.
func (c *Client) Undo(ctx context.Context, s tighten.Subject, overwrite bool) (int, error) {
	st, err := c.load(ctx, s)
	if err != nil || st == nil {
		return 0, err
	}
	done, err := c.restore(ctx, st, overwrite)
	if err != nil {
		// The subject may still need what was added.
		return done, err
	}
	deleted, err := c.removeAdded(ctx, st)
	done += deleted
	if err != nil {
		return done, err
	}
	return done + 1, c.forget(ctx, st)
}

// restoring is what one call of restore knows.
type restoring struct {
	*Client
	st      *stored
	others  []record
	objects *rbac.Grants
	// todo are the objects to write. left are the reasons not to write others, which overwrite does not change.
	todo []restored
	left []string
}

// restored is an object as it is to be written, with what that gives back.
type restored struct {
	*object
	taken *taken
	// before are the rules of a role without update and patch.
	before []rbacv1.PolicyRule
	gives  []string
	// shared are the reasons that overwrite does not change, for example that others would get the rights, doubts those why the subject could get more than was taken from it.
	shared, doubts []string
}

func (o *restored) doubt(format string, args ...any) {
	o.doubts = append(o.doubts, fmt.Sprintf(format, args...))
}

// restore gives update and patch back, as the record says. It looks at all objects before it writes one. Each object is judged by itself:
// the administrator of one namespace does not keep the subject from what it had elsewhere.
func (c *Client) restore(ctx context.Context, st *stored, overwrite bool) (int, error) {
	if len(st.Changed) == 0 {
		return 0, nil
	}
	r := &restoring{Client: c, st: st}
	var err error
	if r.others, err = othersOf(ctx, c.Records, st.subject); err != nil {
		return 0, err
	}
	if r.objects, err = rbac.ListBound(ctx, c.RBAC); err != nil {
		return 0, err
	}
	for i := range st.Changed {
		if err := r.examine(ctx, &st.Changed[i]); err != nil {
			return 0, err
		}
	}
	if err := r.revoked(ctx); err != nil {
		return 0, err
	}
	var refused []string
	done := 0
	for i := range r.todo {
		o := &r.todo[i]
		if len(o.shared) > 0 || len(o.doubts) > 0 && !overwrite {
			refused = append(append(refused, o.shared...), o.doubts...)
			continue
		}
		for _, reason := range o.doubts {
			c.Say("Not as --apply left it: %s", reason)
		}
		if err := r.write(ctx, o); err != nil {
			return done, err
		}
		done++
	}
	if overwrite {
		for _, reason := range r.left {
			c.Say("Not as --apply left it: %s", reason)
		}
	} else {
		refused = append(refused, r.left...)
	}
	return done, errors.Join(r.refusal(refused), r.verify(context.WithoutCancel(ctx)))
}

// refusal is the error for what was not restored.
func (r *restoring) refusal(reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	slices.Sort(reasons)
	return fmt.Errorf("these objects are not restored, because %q or others could get more than --apply took:\n- %s\nremove the reasons and run the command again, restore the objects by hand from the record in Secret %s/%s, or give --force-overwrite for what only %q could get; to leave the rights taken away, delete PermissionObservation %q, the Roles and bindings that the record names, and the Secret",
		r.st.Subject, strings.Join(slices.Compact(reasons), "\n- "), recordNamespace, recordName(r.st.subject), r.st.Subject, r.st.subject.ObservationName())
}

func (r *restoring) write(ctx context.Context, o *restored) error {
	err := r.update(ctx, o.object)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%s changed meanwhile: run the command again", o.ref)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.ref, err)
	}
	r.Say("%s restored: %s", o.ref, strings.Join(o.gives, "; "))
	return nil
}

// verify takes the rules from a role again to which others were bound while it was restored. Afterwards others cannot bind themselves to
// rights that they do not hold.
func (r *restoring) verify(ctx context.Context) error {
	var err error
	if r.objects, err = rbac.ListBound(ctx, r.RBAC); err != nil {
		return err
	}
	var faults []error
	for i := range r.todo {
		o := &r.todo[i]
		if o.role == nil || len(o.shared) > 0 {
			continue
		}
		why := tighten.Sharing(r.objects, o.ref, r.st.subject)
		if why == "" {
			continue
		}
		now, err := r.get(ctx, o.ref)
		if err == nil && now != nil && now.meta().UID == o.taken.UID {
			now.role.Rules = o.before
			if o.taken.Autoupdate && now.meta().Annotations != nil {
				now.meta().Annotations[tighten.AutoupdateAnnotation] = "false"
			}
			err = r.update(ctx, now)
		}
		faults = append(faults, fmt.Errorf("%s: update and patch were taken away again: %s: run the command again", o.ref, why), err)
	}
	return errors.Join(faults...)
}

func (r *restoring) leave(format string, args ...any) {
	r.left = append(r.left, fmt.Sprintf(format, args...))
}

// examine finds out what to write to one object.
func (r *restoring) examine(ctx context.Context, t *taken) error {
	live, err := r.get(ctx, t.ref())
	if err != nil {
		return err
	}
	if live == nil {
		r.Say("%s is gone, and is not restored", t.ref())
		return nil
	}
	if live.meta().UID != t.UID {
		r.leave("%s is another object than the one that was changed: it is not restored", t.ref())
		return nil
	}
	if live.role != nil {
		r.role(t, live)
		return nil
	}
	return r.binding(ctx, t, live)
}

func (r *restoring) role(t *taken, live *object) {
	o := restored{object: live, taken: t, before: live.role.Rules, gives: missing(live.role.Rules, t.Rules)}
	if len(o.gives) == 0 {
		return
	}
	if live.hash() != t.After {
		o.doubt("%s changed since --apply", t.ref())
	}
	if why := tighten.Sharing(r.objects, t.ref(), r.st.subject); why != "" {
		o.shared = append(o.shared, why)
	}
	for _, b := range tighten.Bindings(r.objects) {
		if b.Role == t.ref() && !slices.Contains(t.Bindings, identityOf(b.Ref, b.UID)) {
			o.doubt("%s names %s since --apply", b.Ref, t.ref())
		}
	}
	live.role.Rules = t.Rules
	r.unpin(t, live)
	r.todo = append(r.todo, o)
}

func (r *restoring) binding(ctx context.Context, t *taken, live *object) error {
	subjects := putBack(slices.Clone(live.binding.Subjects), t.Subjects)
	if len(subjects) == len(live.binding.Subjects) {
		return nil
	}
	if t.Role == nil {
		r.leave("%s: the record does not name its role: the binding is not restored", t.ref())
		return nil
	}
	role, err := r.get(ctx, t.Role.ref())
	if err != nil {
		return err
	}
	o := restored{object: live, taken: t, gives: []string{fmt.Sprintf("%s is bound to %s again", r.st.Subject, t.Role.ref())}}
	switch {
	case role == nil:
		r.leave("%s, which %s names, is gone: the binding is not restored", t.Role.ref(), t.ref())
		return nil
	case role.meta().UID != t.Role.UID:
		r.leave("%s, which %s names, is another object than before: the binding is not restored", t.Role.ref(), t.ref())
		return nil
	case role.hash() != t.RoleHash:
		if i := slices.IndexFunc(r.others, func(other record) bool { return other.changes(t.Role) }); i >= 0 {
			// The role has no update and patch to give back, and what was added would be deleted.
			o.shared = append(o.shared, fmt.Sprintf("%s, which %s names, was changed for %q: run the command with --undo for that subject first", t.Role.ref(), t.ref(), r.others[i].Subject))
		}
		o.doubt("%s, which %s names, has other rules than before", t.Role.ref(), t.ref())
	}
	live.binding.Subjects = subjects
	r.unpin(t, live)
	r.todo = append(r.todo, o)
	return nil
}

// unpin lets kube-apiserver write a default object again, unless it would undo the change for another subject.
func (r *restoring) unpin(t *taken, live *object) {
	if t.Autoupdate && live.meta().Annotations[tighten.AutoupdateAnnotation] == "false" && !slices.ContainsFunc(r.others, func(other record) bool { return other.changes(&t.identity) }) {
		live.meta().Annotations[tighten.AutoupdateAnnotation] = "true"
	}
}

// revoked looks for what was added. If an object is gone or changed, the rights of the subject where it was were taken away meanwhile, perhaps
// on purpose. A ClusterRole may have been bound in any namespace, so that it counts in all of them: no administrator of one namespace can
// change it.
func (r *restoring) revoked(ctx context.Context) error {
	if len(r.todo) == 0 {
		return nil
	}
	for i := range r.st.Added {
		m := &r.st.Added[i]
		live, err := r.get(ctx, m.ref())
		if err != nil {
			return err
		}
		how := ""
		switch {
		case live == nil && m.UID == "": // It was never made.
		case live == nil:
			how = "was added by --apply and is gone"
		case !m.is(live):
			how = "is not as --apply made it"
		}
		for i := range r.todo {
			if o := &r.todo[i]; how != "" && (m.Kind == clusterRoleKind || o.taken.gives(m.Namespace)) {
				o.doubt("%s %s: the rights of the subject may have been revoked, so that %s is not restored", m.ref(), how, o.ref)
			}
		}
	}
	return nil
}

// gives reports whether an object that was changed gives rights in a namespace, "" for all of them.
func (t *taken) gives(namespace string) bool {
	if t.Kind != clusterRoleKind {
		return t.Namespace == namespace
	}
	return slices.ContainsFunc(t.Bindings, func(b identity) bool { return b.Namespace == namespace })
}

// missing returns texts of the rights in rules that the present rules do not have.
func missing(now, rules []rbacv1.PolicyRule) []string {
	var out []string
	for i := range rules {
		single := *rules[i].DeepCopy()
		var verbs []string
		for _, verb := range rules[i].Verbs {
			single.Verbs = []string{verb}
			if ok, _ := validation.Covers(now, []rbacv1.PolicyRule{single}); !ok {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) == 0 {
			continue
		}
		var on []string
		for _, group := range rules[i].APIGroups {
			for _, name := range rules[i].Resources {
				on = append(on, tighten.Resource{Group: group, Name: name}.String())
			}
		}
		on = append(on, rules[i].NonResourceURLs...)
		text := fmt.Sprintf("%s on %s", strings.Join(verbs, ", "), strings.Join(on, ", "))
		if len(rules[i].ResourceNames) > 0 {
			text += fmt.Sprintf(" %q", rules[i].ResourceNames)
		}
		out = append(out, text)
	}
	return out
}

// removeAdded deletes what was added, bindings first. What another has put in the place of an object stays.
func (c *Client) removeAdded(ctx context.Context, st *stored) (int, error) {
	done := 0
	var faults []error
	order := slices.Clone(st.Added)
	slices.SortStableFunc(order, func(a, b made) int { return roleFirst(&b) - roleFirst(&a) })
	for i := range order {
		m := &order[i]
		live, err := c.get(ctx, m.ref())
		switch {
		case err != nil:
			faults = append(faults, err)
			continue
		case live == nil:
			continue
		case m.UID == "" && !m.is(live), m.UID != "" && m.UID != live.meta().UID:
			c.Say("%s is not the object that was added, and stays as it is", m.ref())
			continue
		}
		deleted, err := c.remove(ctx, m.ref(), live.meta().UID)
		if deleted {
			done++
			c.Say("%s deleted", m.ref())
		}
		faults = append(faults, err)
	}
	return done, errors.Join(faults...)
}

// roleFirst orders roles before bindings.
func roleFirst(m *made) int {
	if m.Kind == roleKind || m.Kind == clusterRoleKind {
		return 0
	}
	return 1
}
