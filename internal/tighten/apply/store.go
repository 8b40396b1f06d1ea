package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// The record is a Secret in the namespace of Kubernetes' own components. A user that can write Secrets there can take the identities of
// these components anyway, so that the record gives no more to anybody that can change it.
const (
	recordNamespace = metav1.NamespaceSystem
	recordType      = corev1.SecretType("fieldperm.dev/tighten-record")
	recordKey       = "record"
)

// Records returns the client of the Secrets with records.
func Records(client kubernetes.Interface) typedcorev1.SecretInterface {
	return client.CoreV1().Secrets(recordNamespace)
}

// recordName returns the name of the Secret with the record of a subject.
func recordName(s tighten.Subject) string { return "fieldperm-" + s.ObservationName() }

// stored is a record, the Secret that has it, and the PermissionObservation that belongs to it.
type stored struct {
	record
	subject tighten.Subject
	// secret and observation are as they were read or written last, nil before the first write.
	secret      *corev1.Secret
	observation *v1alpha1.PermissionObservation
}

// load returns the record of a subject, nil if there is none.
func (c *Client) load(ctx context.Context, s tighten.Subject) (*stored, error) {
	o, err := c.observation(ctx, s.ObservationName())
	if err != nil {
		return nil, err
	}
	secret, err := secretOf(ctx, c.Records, s)
	if err != nil {
		return nil, err
	}
	if secret == nil && o != nil {
		return nil, fmt.Errorf("PermissionObservation %q exists and was not made by --apply for %q: rename or delete it", o.Name, s)
	}
	if secret == nil {
		return nil, nil
	}
	r, err := decode(s, secret)
	if err != nil {
		return nil, err
	}
	return &stored{*r, s, secret, o}, nil
}

// secretOf returns the Secret with the record of a subject, nil if there is none.
func secretOf(ctx context.Context, records typedcorev1.SecretInterface, s tighten.Subject) (*corev1.Secret, error) {
	secret, err := records.Get(ctx, recordName(s), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record of %q: %w", s, err)
	}
	return secret, nil
}

// observation returns an observation, nil if there is none.
func (c *Client) observation(ctx context.Context, name string) (*v1alpha1.PermissionObservation, error) {
	found, err := c.Observations.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("PermissionObservation %q: %w", name, err)
	}
	return typed(found)
}

func typed(u *unstructured.Unstructured) (*v1alpha1.PermissionObservation, error) {
	out := &v1alpha1.PermissionObservation{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("PermissionObservation %q: %w", u.GetName(), err)
	}
	return out, nil
}

// save writes the record. It fails if another has written the record since it was read.
func (c *Client) save(ctx context.Context, st *stored) error {
	text, err := st.text()
	if err != nil {
		return err
	}
	next := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: recordName(st.subject), Labels: map[string]string{tighten.SubjectLabel: st.subject.ID()}}, Type: recordType}
	var written *corev1.Secret
	if st.secret == nil {
		next.Data = map[string][]byte{recordKey: text}
		written, err = c.Records.Create(ctx, next, metav1.CreateOptions{DryRun: c.dryRun()})
	} else {
		next = st.secret.DeepCopy()
		next.Data = map[string][]byte{recordKey: text}
		written, err = c.Records.Update(ctx, next, metav1.UpdateOptions{DryRun: c.dryRun()})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return st.lost()
	case err != nil:
		return fmt.Errorf("record of %q: %w", st.Subject, err)
	case !c.DryRun: // After a dry run, the next write begins at the same.
		st.secret = written
	}
	return nil
}

// lostError says that another call of Apply or Undo has written or deleted the record or the observation.
type lostError struct{ subject string }

// Error names the subject.
func (e *lostError) Error() string {
	return fmt.Sprintf("the record of %q was changed by another --apply or --undo at the same time: run the command again", e.subject)
}

func (st *stored) lost() error { return &lostError{st.Subject} }

// mostConflicts is how many times in a row fieldperm may write the status while the observation is written.
const mostConflicts = 10

// observe writes the observation, as change makes it.
func (c *Client) observe(ctx context.Context, st *stored, change func(o *v1alpha1.PermissionObservation)) error {
	for range mostConflicts {
		next := &v1alpha1.PermissionObservation{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PermissionObservationKind},
			ObjectMeta: metav1.ObjectMeta{Name: st.subject.ObservationName()},
		}
		if st.observation != nil {
			next = st.observation.DeepCopy()
		}
		change(next)
		err := c.write(ctx, st, next)
		if !apierrors.IsConflict(err) {
			return err
		}
		// fieldperm writes the status every 30 seconds.
		if err := c.refresh(ctx, st); err != nil {
			return err
		}
	}
	return st.lost()
}

// write creates or updates the observation.
func (c *Client) write(ctx context.Context, st *stored, next *v1alpha1.PermissionObservation) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return fmt.Errorf("PermissionObservation %q: %w", next.Name, err)
	}
	var written *unstructured.Unstructured
	if st.observation == nil {
		written, err = c.Observations.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{DryRun: c.dryRun()})
	} else {
		written, err = c.Observations.Update(ctx, &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{DryRun: c.dryRun()})
	}
	switch {
	case apierrors.IsConflict(err):
		return err
	case apierrors.IsAlreadyExists(err):
		return st.lost()
	case apierrors.IsNotFound(err) && st.observation == nil:
		return fmt.Errorf("PermissionObservation %q: the cluster does not have the kind: install the CustomResourceDefinitions of fieldperm: %w", next.Name, err)
	case apierrors.IsNotFound(err):
		return st.lost()
	case err != nil:
		return fmt.Errorf("PermissionObservation %q: %w", next.Name, err)
	case c.DryRun:
		// Nothing was written, so that the next write begins at the same.
		return nil
	}
	st.observation, err = typed(written)
	return err
}

// refresh reads the observation again. It fails if more than the status changed.
func (c *Client) refresh(ctx context.Context, st *stored) error {
	now, err := c.observation(ctx, st.observation.Name)
	if err != nil {
		return err
	}
	if now == nil || now.UID != st.observation.UID || now.Generation != st.observation.Generation {
		return st.lost()
	}
	st.observation = now
	return nil
}

// forget deletes the observation, and then the record.
func (c *Client) forget(ctx context.Context, st *stored) error {
	if err := c.unobserve(ctx, st); err != nil {
		return err
	}
	err := c.Records.Delete(ctx, st.secret.Name, metav1.DeleteOptions{DryRun: c.dryRun(), Preconditions: &metav1.Preconditions{UID: &st.secret.UID, ResourceVersion: &st.secret.ResourceVersion}})
	switch {
	case apierrors.IsConflict(err):
		return st.lost()
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("record of %q: %w", st.Subject, err)
	}
	return nil
}

// unobserve deletes the observation.
func (c *Client) unobserve(ctx context.Context, st *stored) error {
	if st.observation == nil {
		return nil
	}
	err := c.Observations.Delete(ctx, st.observation.Name, metav1.DeleteOptions{DryRun: c.dryRun(), Preconditions: &metav1.Preconditions{UID: &st.observation.UID}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return st.lost()
	case err != nil:
		return fmt.Errorf("PermissionObservation %q: %w", st.observation.Name, err)
	}
	c.Say("PermissionObservation %s deleted", st.observation.Name)
	return nil
}

// prepare makes the specification of an observation without warnings: granular verbs are being added.
func prepare(p *tighten.Proposal) func(o *v1alpha1.PermissionObservation) {
	return func(o *v1alpha1.PermissionObservation) {
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels[tighten.SubjectLabel] = p.Subject.ID()
		o.Spec = v1alpha1.PermissionObservationSpec{
			Subjects:  []v1alpha1.Subject{{Kind: p.Subject.Kind, Namespace: p.Subject.Namespace, Name: p.Subject.Name}},
			Resources: p.Observe,
			Actions:   []v1alpha1.ObservationAction{v1alpha1.ObservationAudit},
		}
	}
}

// warn makes it one with warnings. A new generation starts the status again: earlier counts are about fewer verbs.
func warn(p *tighten.Proposal) func(o *v1alpha1.PermissionObservation) {
	return func(o *v1alpha1.PermissionObservation) {
		prepare(p)(o)
		o.Spec.Actions = append(o.Spec.Actions, v1alpha1.ObservationWarn)
	}
}

// warns reports whether an observation is with warnings, of the subject, and of all resources that are to be observed. It may have more: the
// copies of roles that the first step adds have fewer.
func warns(p *tighten.Proposal, o *v1alpha1.PermissionObservation) bool {
	var want v1alpha1.PermissionObservation
	warn(p)(&want)
	return slices.Equal(o.Spec.Subjects, want.Spec.Subjects) && slices.Contains(o.Spec.Actions, v1alpha1.ObservationWarn) &&
		!slices.ContainsFunc(want.Spec.Resources, func(r v1alpha1.ResourceRule) bool { return !covers(o.Spec.Resources, &r) })
}

// covers reports whether each resource of a rule is in one of the rules.
func covers(rules []v1alpha1.ResourceRule, want *v1alpha1.ResourceRule) bool {
	has := func(list []string, name string) bool {
		return slices.Contains(list, name) || slices.Contains(list, rbacv1.ResourceAll)
	}
	for _, group := range want.APIGroups {
		for _, resource := range want.Resources {
			if !slices.ContainsFunc(rules, func(r v1alpha1.ResourceRule) bool { return has(r.APIGroups, group) && has(r.Resources, resource) }) {
				return false
			}
		}
	}
	return true
}

// othersOf returns the records of other subjects.
func othersOf(ctx context.Context, records typedcorev1.SecretInterface, s tighten.Subject) ([]record, error) {
	items, err := records.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("type", string(recordType)).String()})
	if err != nil {
		return nil, fmt.Errorf("records of --apply: %w", err)
	}
	var out []record
	for i := range items.Items {
		secret := &items.Items[i]
		if secret.Type != recordType || secret.Name == recordName(s) {
			continue
		}
		r := record{}
		if err := json.Unmarshal(secret.Data[recordKey], &r); err != nil {
			return nil, noRecord(secret, err)
		}
		out = append(out, r)
	}
	return out, nil
}
