package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// Client changes the RBAC objects of a cluster.
type Client struct {
	RBAC kubernetes.Interface
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

// Apply makes the next step of a proposal. objects are those that the proposal was made from.
func (c *Client) Apply(ctx context.Context, p *tighten.Proposal, more []string, options Options) (Step, error) {
	if more = slices.Concat(p.New, more); len(more) > 0 && !options.New {
		return Nothing, fmt.Errorf("the proposal is more than the subject holds now, or less than it needs: %s: look at it, then give --allow-new", strings.Join(more, "; "))
	}
	if len(p.Change) == 0 {
		return Nothing, nil
	}
	observation, err := c.observation(ctx, p.Subject)
	if err != nil {
		return Nothing, err
	}
	if _, err := plan(p); err != nil {
		return Nothing, err
	}
	if observation != nil {
		if err := unchanged(p, observation.Annotations[planAnnotation]); err != nil {
			return Nothing, err
		}
	}
	added, err := c.add(ctx, p)
	if err != nil {
		return Nothing, err
	}
	if added || observation == nil {
		return Added, c.observe(ctx, p, observation)
	}
	if reasons := slices.Concat(gate(observation), p.Gaps); len(reasons) > 0 && !options.Unproven {
		return Nothing, &BlockedError{reasons}
	}
	if err := c.remove(ctx, p); err != nil {
		return Nothing, err
	}
	if options.Unproven || c.DryRun {
		return Removed, nil
	}
	return Removed, c.proveLetIn(ctx, p, &options)
}

// plan returns the hashes of what is to be changed.
func plan(p *tighten.Proposal) (map[string]string, error) {
	out := map[string]string{}
	for i := range p.Change {
		sum, err := state(&p.Change[i])
		if err != nil {
			return nil, err
		}
		if err := recordable(&p.Change[i]); err != nil {
			return nil, err
		}
		out[p.Change[i].Ref.String()] = sum
	}
	for _, o := range p.Added() {
		role, ok := o.Object.(*rbacv1.ClusterRole)
		rules, annotations := []rbacv1.PolicyRule(nil), map[string]string(nil)
		if ok {
			rules, annotations = role.Rules, role.Annotations
		} else if role, ok := o.Object.(*rbacv1.Role); ok {
			rules, annotations = role.Rules, role.Annotations
		}
		if source := annotations[tighten.SourceAnnotation]; source != "" {
			sum, err := hash(rules)
			if err != nil {
				return nil, err
			}
			out[source+" without update and patch"] = sum
		}
	}
	return out, nil
}

// unchanged returns an error if a role or binding is not as it was when the observation was made.
func unchanged(p *tighten.Proposal, recorded string) error {
	before := map[string]string{}
	if err := json.Unmarshal([]byte(recorded), &before); err != nil {
		return fmt.Errorf("PermissionObservation: annotation %s is no plan: %w: run with --undo, then with --apply", planAnnotation, err)
	}
	now, err := plan(p)
	if err != nil {
		return err
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		// What was changed already in an earlier call that did not end is not in the proposal any more.
		if before[name] != now[name] {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		return fmt.Errorf("%s changed since the first --apply: look at the change, then run with --undo and with --apply again", strings.Join(changed, ", "))
	}
	return nil
}

// add creates or corrects the objects to add. It reports whether anything was to be done.
func (c *Client) add(ctx context.Context, p *tighten.Proposal) (bool, error) {
	any := false
	for _, o := range p.Added() {
		done, err := c.addOne(ctx, p.Subject, o)
		if err != nil {
			return any, err
		}
		any = any || done
	}
	return any, nil
}

func (c *Client) addOne(ctx context.Context, s tighten.Subject, o tighten.Named) (bool, error) {
	ours := func(labels map[string]string, deleted *metav1.Time) error {
		if labels[tighten.SubjectLabel] != s.ID() {
			return fmt.Errorf("%s exists and was not made for %q: rename or delete it", o.Ref, s)
		}
		if deleted != nil {
			return fmt.Errorf("%s is being deleted: try again when it is gone", o.Ref)
		}
		return nil
	}
	rbac, create, update := c.RBAC.RbacV1(), metav1.CreateOptions{DryRun: c.dryRun()}, metav1.UpdateOptions{DryRun: c.dryRun()}
	var err, checked error
	same := false
	switch want := o.Object.(type) {
	case *rbacv1.ClusterRole:
		_, err = rbac.ClusterRoles().Create(ctx, want, create)
		if apierrors.IsAlreadyExists(err) {
			var is *rbacv1.ClusterRole
			if is, err = rbac.ClusterRoles().Get(ctx, want.Name, metav1.GetOptions{}); err == nil {
				checked = ours(is.Labels, is.DeletionTimestamp)
				if same = equality.Semantic.DeepEqual(is.Rules, want.Rules); !same && checked == nil {
					is.Rules = want.Rules
					_, err = rbac.ClusterRoles().Update(ctx, is, update)
				}
			}
		}
	case *rbacv1.Role:
		_, err = rbac.Roles(want.Namespace).Create(ctx, want, create)
		if apierrors.IsAlreadyExists(err) {
			var is *rbacv1.Role
			if is, err = rbac.Roles(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{}); err == nil {
				checked = ours(is.Labels, is.DeletionTimestamp)
				if same = equality.Semantic.DeepEqual(is.Rules, want.Rules); !same && checked == nil {
					is.Rules = want.Rules
					_, err = rbac.Roles(want.Namespace).Update(ctx, is, update)
				}
			}
		}
	case *rbacv1.ClusterRoleBinding:
		_, err = rbac.ClusterRoleBindings().Create(ctx, want, create)
		if apierrors.IsAlreadyExists(err) {
			var is *rbacv1.ClusterRoleBinding
			if is, err = rbac.ClusterRoleBindings().Get(ctx, want.Name, metav1.GetOptions{}); err == nil {
				checked = ours(is.Labels, is.DeletionTimestamp)
				if same = is.RoleRef == want.RoleRef && equality.Semantic.DeepEqual(is.Subjects, want.Subjects); !same && checked == nil {
					checked = fmt.Errorf("%s was changed by another: run with --undo, then with --apply", o.Ref)
				}
			}
		}
	case *rbacv1.RoleBinding:
		_, err = rbac.RoleBindings(want.Namespace).Create(ctx, want, create)
		if apierrors.IsAlreadyExists(err) {
			var is *rbacv1.RoleBinding
			if is, err = rbac.RoleBindings(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{}); err == nil {
				checked = ours(is.Labels, is.DeletionTimestamp)
				if same = is.RoleRef == want.RoleRef && equality.Semantic.DeepEqual(is.Subjects, want.Subjects); !same && checked == nil {
					checked = fmt.Errorf("%s was changed by another: run with --undo, then with --apply", o.Ref)
				}
			}
		}
	}
	if err := errors.Join(err, checked); err != nil {
		return false, fmt.Errorf("%s: %w", o.Ref, err)
	}
	if !same {
		c.Say("%s added", o.Ref)
	}
	return !same, nil
}

func (c *Client) dryRun() []string {
	if c.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// remove takes update and patch away, with a record on each changed object. Each write fails if the object is not the one that the
// proposal was made from.
func (c *Client) remove(ctx context.Context, p *tighten.Proposal) error {
	for i := range p.Change {
		ch := &p.Change[i]
		err := c.changeOne(ctx, p.Subject.ID(), ch)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return fmt.Errorf("%s changed while the proposal was made: run the command again", ch.Ref)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", ch.Ref, err)
		}
		c.Say("%s changed", ch.Ref)
	}
	return nil
}

func (c *Client) changeOne(ctx context.Context, id string, ch *tighten.Change) error {
	rbac, update := c.RBAC.RbacV1(), metav1.UpdateOptions{DryRun: c.dryRun()}
	o, err := originalOf(ch)
	if err != nil {
		return err
	}
	if ch.Role != nil {
		after := ch.RoleAfter.DeepCopy()
		if err := recorded(ch.Ref, id, &after.ObjectMeta, o); err != nil {
			return err
		}
		if ch.Ref.Namespace == "" {
			_, err = rbac.ClusterRoles().Update(ctx, after, update)
			return err
		}
		_, err = rbac.Roles(ch.Ref.Namespace).Update(ctx, &rbacv1.Role{ObjectMeta: after.ObjectMeta, Rules: after.Rules}, update)
		return err
	}
	after := ch.BindingAfter.DeepCopy()
	if err := recorded(ch.Ref, id, &after.ObjectMeta, o); err != nil {
		return err
	}
	if ch.Ref.Namespace == "" {
		_, err = rbac.ClusterRoleBindings().Update(ctx, after, update)
		return err
	}
	_, err = rbac.RoleBindings(ch.Ref.Namespace).Update(ctx, &rbacv1.RoleBinding{ObjectMeta: after.ObjectMeta, Subjects: after.Subjects, RoleRef: after.RoleRef}, update)
	return err
}
