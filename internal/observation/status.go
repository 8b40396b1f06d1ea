package observation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

const (
	// pause is the shortest time between two writes of one status, also by different replicas.
	pause = 30 * time.Second
	// idle is the longest time between two writes of a status: a replica shows that it is running.
	idle = 60 * time.Second
	// absent is how long a replica that has just started waits for the writes of others. If there are none, no replica was running.
	absent = 75 * time.Second
	// enough is how many writes of a status may fail for another cause than its content.
	enough = 3
	// maxMessage bounds the message of a condition in bytes. The API type allows more, but no reader needs it.
	maxMessage = 1024
)

// known is what this replica knows of the status of one observation.
type known struct {
	generation int64
	// heard means that a replica has written the status since this one started, so that there is no gap before.
	heard bool
	// last is the last status that this replica wrote or read, which the informer may not have yet.
	last *v1alpha1.PermissionObservationStatus
	// version is the resource version after that.
	version string
	// failures is how many writes failed since the last one that did not.
	failures int
}

// writeStatuses writes each status that is due. last means that there will be no other write.
func (k *Keeper) writeStatuses(ctx context.Context, objects []*v1alpha1.PermissionObservation, last bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := map[string]bool{}
	var errs []error
	for _, o := range objects {
		found[string(o.UID)] = true
		if err := k.writeStatus(ctx, o, last); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: status: %w", v1alpha1.PermissionObservationKind, o.Name, err))
		}
	}
	for uid := range k.statuses {
		if !found[string(uid)] {
			delete(k.statuses, uid)
		}
	}
	return errors.Join(errs...)
}

func (k *Keeper) writeStatus(ctx context.Context, o *v1alpha1.PermissionObservation, last bool) error {
	w := k.config.Recorder.of(o)
	if w == nil {
		return nil
	}
	one := k.statuses[o.UID]
	if one == nil || one.generation != o.Generation {
		one = &known{generation: o.Generation}
		k.statuses[o.UID] = one
	}
	status, version := &o.Status, o.ResourceVersion
	if one.last != nil && one.last.Updated != nil && (status.Updated == nil || status.Updated.Before(one.last.Updated) || status.ObservedGeneration != o.Generation) {
		status, version = one.last, one.version
	}
	now := k.config.Clock.Now()
	if status.ObservedGeneration != o.Generation {
		status, one.heard = &v1alpha1.PermissionObservationStatus{ObservedGeneration: o.Generation}, true
	}
	if !k.config.Recorder.authenticated {
		// What was counted before may be forged as well.
		status = &v1alpha1.PermissionObservationStatus{ObservedGeneration: o.Generation, Conditions: status.Conditions, Updated: status.Updated}
		one.heard = true
	}
	if status.Updated == nil || !status.Updated.Time.Before(k.begun.Truncate(time.Second)) {
		one.heard = true
	}
	if !one.heard && !last && now.Sub(k.begun) < absent {
		return nil
	}
	if !last && !k.due(status, w, now) {
		return nil
	}
	counted := w.take()
	if last && counted.isEmpty() {
		return nil
	}
	if !one.heard && !last {
		counted.miss(v1alpha1.ObservationGap{From: *status.Updated, To: metav1.NewTime(k.begun.Truncate(time.Second)), Reason: "no fieldperm was running"})
	}
	next := merge(status, &counted)
	k.date(next, now)
	written, err := k.applyStatus(ctx, o, version, next, k.condition(next, now))
	failed, rejected := err, err != nil && one.isRejected(err)
	if rejected {
		next, written, err = k.writeLess(ctx, o, version, status, &counted, err)
	}
	switch {
	case err == nil:
		one.last, one.version, one.heard, one.failures = next, written, true, 0
		return failed
	case apierrors.IsNotFound(err):
		return nil // Deleted meanwhile.
	}
	w.giveBack(&counted)
	one.last = nil
	if apierrors.IsConflict(err) && !last {
		return nil // Another replica was faster. The informer brings its status.
	}
	if rejected {
		err = errors.Join(err, k.sayNotWritten(ctx, o, version, status, failed))
	}
	return err
}

// isRejected reports whether a status cannot be written as it is, so that trying again is of no use.
func (one *known) isRejected(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false
	}
	one.failures++
	code := int(status.Status().Code)
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests || one.failures >= enough
}

// writeLess writes a status after one that the API server rejected. It has the rows that the API server stores, or else none, and counts
// the others as omitted: a status that stayed as it was would seem complete.
func (k *Keeper) writeLess(
	ctx context.Context, o *v1alpha1.PermissionObservation, version string, status *v1alpha1.PermissionObservationStatus, counted *counts, cause error,
) (next *v1alpha1.PermissionObservationStatus, written string, err error) {
	now, condition := k.config.Clock.Now(), notWritten("the latest counts are omitted, because they cannot be written", cause)
	for _, before := range []*v1alpha1.PermissionObservationStatus{status, withoutRows(status)} {
		next = merge(before, counted.withoutRows())
		k.date(next, now)
		if written, err = k.applyStatus(ctx, o, version, next, condition); err == nil {
			return next, written, nil
		}
	}
	return nil, "", fmt.Errorf("%w; without its rows: %w", cause, err)
}

// sayNotWritten writes the condition beside the status that the API server has, which it accepts as it is. The counts stay in memory.
func (k *Keeper) sayNotWritten(ctx context.Context, o *v1alpha1.PermissionObservation, version string, status *v1alpha1.PermissionObservationStatus, cause error) error {
	_, err := k.applyStatus(ctx, o, version, status.DeepCopy(), notWritten("the counts of fieldperm cannot be written", cause))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func notWritten(what string, cause error) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionObserving, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotWritten, Message: what + ": " + cause.Error()}
}

// date sets the times of a status that is written now.
func (k *Keeper) date(status *v1alpha1.PermissionObservationStatus, now time.Time) {
	status.Updated = &metav1.Time{Time: now.Truncate(time.Second)}
	if status.Since == nil && k.isApplied(now) && k.config.Recorder.authenticated {
		status.Since = &metav1.Time{Time: k.applied.Add(settled).Truncate(time.Second)}
	}
}

// due reports whether a status must be written: if there is something new and it has not been written for a while, or to show that a
// replica is running.
func (k *Keeper) due(status *v1alpha1.PermissionObservationStatus, w *watched, now time.Time) bool {
	if status.Updated == nil {
		return k.isApplied(now) || k.fault != ""
	}
	since := now.Sub(status.Updated.Time)
	if since < pause {
		return false
	}
	w.mu.Lock()
	news := !w.fresh.isEmpty()
	w.mu.Unlock()
	condition := k.condition(status, now)
	has := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObserving)
	return news || since >= idle || has == nil || has.Status != condition.Status || has.Reason != condition.Reason
}

func (k *Keeper) isApplied(now time.Time) bool {
	return k.wanted != nil && k.fault == "" && now.Sub(k.applied) >= settled
}

// condition returns the condition Observing.
func (k *Keeper) condition(status *v1alpha1.PermissionObservationStatus, now time.Time) metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionObserving, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonObserving, Message: "kube-apiserver asks about the updates"}
	if !k.config.Recorder.authenticated {
		out.Status, out.Reason = metav1.ConditionFalse, v1alpha1.ReasonNotAuthenticated
		out.Message = "nothing is counted, because fieldperm runs with --admission-callers=any, and any client could add to the counts: use an audit log"
		return out
	}
	if !k.isApplied(now) {
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, v1alpha1.ReasonNotApplied, "the API servers are learning of the rules"
		if k.fault != "" {
			out.Message = k.fault
		}
		return out
	}
	var missing []string
	if n := len(status.Gaps); n > 0 {
		missing = append(missing, fmt.Sprintf("updates may have been missed, last until %s: %s", status.Gaps[n-1].To.UTC().Format(time.RFC3339), status.Gaps[n-1].Reason))
	}
	if status.Failed > 0 {
		missing = append(missing, fmt.Sprintf("the verbs of %d updates are not known: see the log of fieldperm", status.Failed))
	}
	if status.Omitted > 0 {
		missing = append(missing, fmt.Sprintf("%d uses of verbs are not listed, because the status is full or has no room for a name: observe fewer users or resources", status.Omitted))
	}
	if len(missing) > 0 {
		out.Reason, out.Message = v1alpha1.ReasonIncomplete, strings.Join(missing, "; ")
	}
	return out
}

// applyStatus writes the status with a condition, only if the object is still the one that was merged. It returns the resource version.
func (k *Keeper) applyStatus(
	ctx context.Context, o *v1alpha1.PermissionObservation, version string, status *v1alpha1.PermissionObservationStatus, condition metav1.Condition,
) (string, error) {
	condition.ObservedGeneration, condition.LastTransitionTime = o.Generation, metav1.NewTime(k.config.Clock.Now())
	condition.Message = shorten.Within(condition.Message, maxMessage)
	meta.SetStatusCondition(&status.Conditions, condition)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return "", err
	}
	patch := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	patch.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.PermissionObservationKind))
	patch.SetName(o.Name)
	patch.SetUID(o.UID)
	patch.SetResourceVersion(version)
	written, err := k.config.Dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.PermissionObservationResource)).
		ApplyStatus(ctx, o.Name, patch, metav1.ApplyOptions{FieldManager: uncovered.FieldManager, Force: true})
	if err != nil {
		return "", err
	}
	return written.GetResourceVersion(), nil
}
