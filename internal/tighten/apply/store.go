package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// stored is a record, and the PermissionObservation that has it.
type stored struct {
	record
	subject tighten.Subject
	name    string
	// observation is as it was read or written last, nil before the first write.
	observation *v1alpha1.PermissionObservation
}

// load returns the record of a subject, nil if there is none.
func (c *Client) load(ctx context.Context, s tighten.Subject) (*stored, error) {
	o, err := c.observation(ctx, s.ObservationName())
	if err != nil || o == nil {
		return nil, err
	}
	r, err := decode(s, o)
	if err != nil {
		return nil, err
	}
	return &stored{*r, s, o.Name, o}, nil
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

// mostConflicts is how many times in a row fieldperm may write the status while the record is written.
const mostConflicts = 10

// save writes the record. change changes the rest of the observation, or is nil. It fails if another has written the record since it was read.
func (c *Client) save(ctx context.Context, st *stored, change func(o *v1alpha1.PermissionObservation)) error {
	text, err := st.text()
	if err != nil {
		return err
	}
	for range mostConflicts {
		next := &v1alpha1.PermissionObservation{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PermissionObservationKind},
			ObjectMeta: metav1.ObjectMeta{Name: st.name},
		}
		if st.observation != nil {
			next = st.observation.DeepCopy()
		}
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[recordAnnotation] = text
		if change != nil {
			change(next)
		}
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

// lostError says that another call of Apply or Undo has written or deleted the record.
type lostError struct{ name string }

// Error names the observation.
func (e *lostError) Error() string {
	return fmt.Sprintf("PermissionObservation %q was changed by another --apply or --undo at the same time: run the command again", e.name)
}

func (st *stored) lost() error { return &lostError{st.name} }

// write creates or updates the observation.
func (c *Client) write(ctx context.Context, st *stored, next *v1alpha1.PermissionObservation) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return fmt.Errorf("PermissionObservation %q: %w", st.name, err)
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
		return fmt.Errorf("PermissionObservation %q: the cluster does not have the kind: install the CustomResourceDefinitions of fieldperm: %w", st.name, err)
	case apierrors.IsNotFound(err):
		return st.lost()
	case err != nil:
		return fmt.Errorf("PermissionObservation %q: %w", st.name, err)
	case c.DryRun:
		// Nothing was written, so that the next write begins at the same.
		return nil
	}
	st.observation, err = typed(written)
	return err
}

// refresh reads the observation again. It fails if more than the status changed.
func (c *Client) refresh(ctx context.Context, st *stored) error {
	now, err := c.observation(ctx, st.name)
	if err != nil {
		return err
	}
	if now == nil || now.UID != st.observation.UID || now.Generation != st.observation.Generation || !maps.Equal(now.Annotations, st.observation.Annotations) {
		return st.lost()
	}
	st.observation = now
	return nil
}

// forget deletes the observation with the record.
func (c *Client) forget(ctx context.Context, st *stored) error {
	for range mostConflicts {
		uid, version := st.observation.UID, st.observation.ResourceVersion
		err := c.Observations.Delete(ctx, st.name, metav1.DeleteOptions{DryRun: c.dryRun(), Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsConflict(err):
			if err := c.refresh(ctx, st); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("PermissionObservation %q: %w", st.name, err)
		default:
			c.Say("PermissionObservation %s deleted", st.name)
			return nil
		}
	}
	return st.lost()
}

// prepare makes the specification of an observation without warnings: granular verbs are being added.
func prepare(p *tighten.Proposal) func(o *v1alpha1.PermissionObservation) {
	return func(o *v1alpha1.PermissionObservation) {
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels[tighten.SubjectLabel] = p.Subject.ID()
		o.Spec = v1alpha1.PermissionObservationSpec{
			Subjects:  []v1alpha1.ObservedSubject{{Kind: p.Subject.Kind, Namespace: p.Subject.Namespace, Name: p.Subject.Name}},
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

// warns reports whether an observation is of the subject and with warnings, as warn makes it.
func warns(p *tighten.Proposal, o *v1alpha1.PermissionObservation) bool {
	var want v1alpha1.PermissionObservation
	warn(p)(&want)
	return slices.Equal(o.Spec.Subjects, want.Spec.Subjects) && slices.Contains(o.Spec.Actions, v1alpha1.ObservationWarn)
}

// others returns the records of other subjects.
func (c *Client) others(ctx context.Context, st *stored) ([]record, error) {
	items, err := c.Observations.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("PermissionObservations: %w", err)
	}
	var out []record
	for i := range items.Items {
		o, err := typed(&items.Items[i])
		if err != nil {
			return nil, err
		}
		text, ok := o.Annotations[recordAnnotation]
		if !ok || o.Name == st.name {
			continue
		}
		r := record{}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return nil, fmt.Errorf("PermissionObservation %q: annotation %s is no record: %w: restore the objects by hand, then delete it", o.Name, recordAnnotation, err)
		}
		out = append(out, r)
	}
	return out, nil
}
