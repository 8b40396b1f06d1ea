package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// observation returns the observation that Apply made for a subject, nil if there is none.
func (c *Client) observation(ctx context.Context, s tighten.Subject) (*v1alpha1.PermissionObservation, error) {
	found, err := c.Observations.Get(ctx, s.ObservationName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("PermissionObservation %q: %w", s.ObservationName(), err)
	}
	out := &v1alpha1.PermissionObservation{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, out); err != nil {
		return nil, fmt.Errorf("PermissionObservation %q: %w", s.ObservationName(), err)
	}
	if out.Labels[tighten.SubjectLabel] != s.ID() {
		return nil, fmt.Errorf("PermissionObservation %q exists and was not made for %q: rename or delete it", out.Name, s)
	}
	return out, nil
}

// observe starts an observation with warnings. An earlier one is replaced: its counts are about fewer verbs.
func (c *Client) observe(ctx context.Context, p *tighten.Proposal, earlier *v1alpha1.PermissionObservation) error {
	hashes, err := plan(p)
	if err != nil {
		return err
	}
	text, err := json.Marshal(hashes)
	if err != nil {
		return err
	}
	name := p.Subject.ObservationName()
	if len(text) > maxRecord {
		return fmt.Errorf("PermissionObservation %q: the plan has %d bytes, more than %d: make the changes by hand with -o yaml", name, len(text), maxRecord)
	}
	o := &v1alpha1.PermissionObservation{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PermissionObservationKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{tighten.SubjectLabel: p.Subject.ID()}, Annotations: map[string]string{planAnnotation: string(text)},
		},
		Spec: v1alpha1.PermissionObservationSpec{
			Subjects:  []v1alpha1.ObservedSubject{{Kind: p.Subject.Kind, Namespace: p.Subject.Namespace, Name: p.Subject.Name}},
			Resources: p.Observe,
			Actions:   []v1alpha1.ObservationAction{v1alpha1.ObservationAudit, v1alpha1.ObservationWarn},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	if earlier != nil {
		err := c.Observations.Delete(ctx, name, metav1.DeleteOptions{DryRun: c.dryRun(), Preconditions: &metav1.Preconditions{UID: &earlier.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("PermissionObservation %q: %w", name, err)
		}
		if c.DryRun {
			c.Say("PermissionObservation %s started again", name)
			return nil
		}
	}
	if _, err := c.Observations.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{DryRun: c.dryRun()}); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("PermissionObservation %q: the cluster does not have the kind: install the CustomResourceDefinitions of fieldperm: %w", name, err)
		}
		return fmt.Errorf("PermissionObservation %q: %w", name, err)
	}
	c.Say("PermissionObservation %s started", name)
	return nil
}

// gate says why an observation does not show that the subject needs no update and patch, nothing if it does.
func gate(o *v1alpha1.PermissionObservation) []string {
	var out []string
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("PermissionObservation %q ", o.Name)+fmt.Sprintf(format, args...))
	}
	status := &o.Status
	if status.ObservedGeneration != o.Generation {
		add("has no status of its specification: wait until fieldperm has written it")
		return out
	}
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionObserving) {
		add("is not observing: look at its conditions")
	}
	if status.Refused > 0 {
		add("has seen %d writes that need more than the granular verbs: run the command again with the evidence of them, which adds their verbs", status.Refused)
	}
	if status.Failed > 0 {
		add("could not determine the verbs of %d writes: look at its conditions", status.Failed)
	}
	if status.Omitted > 0 {
		add("omits %d uses of verbs: look at an audit log", status.Omitted)
	}
	if len(status.Gaps) > 0 {
		g := &status.Gaps[len(status.Gaps)-1]
		add("may have missed writes in %d periods, the last until %s: %s: start it again with --undo and --apply", len(status.Gaps), g.To.UTC().Format(metav1.RFC3339Micro), g.Reason)
	}
	if status.Writes == 0 {
		add("has seen no write: wait until the subject has made all of its writes")
	}
	return out
}
