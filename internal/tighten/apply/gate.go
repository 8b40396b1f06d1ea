package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

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
