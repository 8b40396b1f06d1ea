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
// how many objects that were. Nothing is written if another has changed one of the objects since, unless overwrite is set. Undo may be
// called again at any time.
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
	// todo are the objects to write, refused the reasons not to write any.
	todo    []restored
	refused []string
}

// restored is an object as it is to be written, with what that gives back.
type restored struct {
	*object
	taken *taken
	// before are the rules of a role without update and patch.
	before []rbacv1.PolicyRule
	gives  []string
}

// restore gives update and patch back, as the record says. It looks at all objects before it writes one.
func (c *Client) restore(ctx context.Context, st *stored, overwrite bool) (int, error) {
	if len(st.Changed) == 0 {
		return 0, nil
	}
	r := &restoring{Client: c, st: st}
	var err error
	if r.others, err = c.others(ctx, st); err != nil {
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
	if len(r.todo) > 0 {
		if err := r.revoked(ctx); err != nil {
			return 0, err
		}
	}
	if len(r.refused) > 0 && !overwrite {
		return 0, fmt.Errorf("nothing is restored, because %q could get back more than --apply took:\n- %s\nrestore the objects by hand from the record in Secret %s/%s, or give --force-overwrite; to leave the rights taken away, delete PermissionObservation %q, the Roles and bindings that the record names, and the Secret",
			st.Subject, strings.Join(r.refused, "\n- "), recordNamespace, recordName(st.subject), st.subject.ObservationName())
	}
	for _, reason := range r.refused {
		c.Say("Not as --apply left it: %s", reason)
	}
	for i, o := range r.todo {
		err := c.update(ctx, o.object)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return i, fmt.Errorf("%s changed meanwhile: run the command again", o.ref)
		}
		if err != nil {
			return i, fmt.Errorf("%s: %w", o.ref, err)
		}
		c.Say("%s restored: %s", o.ref, strings.Join(o.gives, "; "))
	}
	if overwrite {
		return len(r.todo), nil
	}
	return len(r.todo), r.verify(context.WithoutCancel(ctx))
}

// verify takes the rules from a role again to which others were bound while it was restored. Afterwards others cannot bind themselves to
// rights that they do not hold.
func (r *restoring) verify(ctx context.Context) error {
	var err error
	if r.objects, err = rbac.ListBound(ctx, r.RBAC); err != nil {
		return err
	}
	var faults []error
	for _, o := range r.todo {
		r.refused = nil
		if o.role == nil || r.held(o.taken) {
			continue
		}
		faults = append(faults, fmt.Errorf("%s: update and patch were taken away again: %s: run the command again", o.ref, strings.Join(r.refused, ", ")))
		now, err := r.get(ctx, o.ref)
		if err == nil && now != nil && now.meta().UID == o.taken.UID {
			now.role.Rules = o.before
			if o.taken.Autoupdate && now.meta().Annotations != nil {
				now.meta().Annotations[tighten.AutoupdateAnnotation] = "false"
			}
			err = r.update(ctx, now)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (r *restoring) refuse(format string, args ...any) {
	r.refused = append(r.refused, fmt.Sprintf(format, args...))
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
		r.refuse("%s is another object than the one that was changed: it is not restored", t.ref())
		return nil
	}
	if live.role != nil {
		r.role(t, live)
		return nil
	}
	return r.binding(ctx, t, live)
}

func (r *restoring) role(t *taken, live *object) {
	gives := missing(live.role.Rules, t.Rules)
	if len(gives) == 0 {
		return
	}
	if live.hash() != t.After {
		r.refuse("%s changed since --apply", t.ref())
	}
	r.held(t)
	before := live.role.Rules
	live.role.Rules = t.Rules
	r.unpin(t, live)
	r.todo = append(r.todo, restored{live, t, before, gives})
}

// held reports whether only the subject holds a role, by no other bindings than before. If not, it notes the reasons.
func (r *restoring) held(t *taken) bool {
	reasons := len(r.refused)
	if why := tighten.Sharing(r.objects, t.ref(), r.st.subject); why != "" {
		r.refuse("%s", why)
	}
	for _, b := range tighten.Bindings(r.objects) {
		if b.Role == t.ref() && !slices.Contains(t.Bindings, identityOf(b.Ref, b.UID)) {
			r.refuse("%s names %s since --apply", b.Ref, t.ref())
		}
	}
	return len(r.refused) == reasons
}

func (r *restoring) binding(ctx context.Context, t *taken, live *object) error {
	subjects := putBack(slices.Clone(live.binding.Subjects), t.Subjects)
	if len(subjects) == len(live.binding.Subjects) {
		return nil
	}
	if t.Role == nil {
		r.refuse("%s: the record does not name its role: the binding is not restored", t.ref())
		return nil
	}
	role, err := r.get(ctx, t.Role.ref())
	if err != nil {
		return err
	}
	switch {
	case role == nil:
		r.refuse("%s, which %s names, is gone: the binding is not restored", t.Role.ref(), t.ref())
		return nil
	case role.meta().UID != t.Role.UID:
		r.refuse("%s, which %s names, is another object than before: the binding is not restored", t.Role.ref(), t.ref())
		return nil
	case role.hash() != t.RoleHash:
		r.refuse("%s, which %s names, has other rules than before", t.Role.ref(), t.ref())
	}
	live.binding.Subjects = subjects
	r.unpin(t, live)
	r.todo = append(r.todo, restored{live, t, nil, []string{fmt.Sprintf("%s is bound to %s again", r.st.Subject, t.Role.ref())}})
	return nil
}

// unpin lets kube-apiserver write a default object again, unless it would undo the change for another subject.
func (r *restoring) unpin(t *taken, live *object) {
	if t.Autoupdate && live.meta().Annotations[tighten.AutoupdateAnnotation] == "false" && !slices.ContainsFunc(r.others, func(other record) bool { return other.changes(&t.identity) }) {
		live.meta().Annotations[tighten.AutoupdateAnnotation] = "true"
	}
}

// revoked looks for what was added. If an object is gone or changed, the rights of the subject were taken away meanwhile, perhaps on purpose.
func (r *restoring) revoked(ctx context.Context) error {
	for i := range r.st.Added {
		m := &r.st.Added[i]
		live, err := r.get(ctx, m.ref())
		if err != nil {
			return err
		}
		switch {
		case live == nil && m.UID == "": // It was never made.
		case live == nil:
			r.refuse("%s was added by --apply and is gone: the rights of the subject may have been revoked", m.ref())
		case !m.is(live):
			r.refuse("%s is not as --apply made it: the rights of the subject may have been revoked", m.ref())
		}
	}
	return nil
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
