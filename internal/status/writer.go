package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/refresh"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// FieldManager is the field manager of the status.
const FieldManager = "fieldperm"

const (
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	// writesPerSecond and writesAtOnce bound the rate of writes.
	writesPerSecond, writesAtOnce = 5, 20
)

func timing() refresh.Timing {
	return refresh.Timing{Interval: 30 * time.Second, Settle: 200 * time.Millisecond, FirstRetry: 2 * time.Second, LastRetry: 30 * time.Second}
}

// resources are the resources of the kinds with a status.
var resources = map[string]string{
	v1alpha1.PermissionSchemaKind:       v1alpha1.PermissionSchemaResource,
	v1alpha1.UncoveredPermissionSetKind: v1alpha1.UncoveredPermissionSetResource,
	v1alpha1.ConditionalPolicyKind:      v1alpha1.ConditionalPolicyResource,
}

// Config configures a Writer. All fields are required.
type Config struct {
	Client dynamic.Interface
	// Known returns the objects of the API server from the informers.
	Known func() []*unstructured.Unstructured
	// States returns the objects that the schema in force was compiled from.
	States func() []sources.ObjectState
	// Enforced reports whether the barriers of an object are enforced. It is called for objects with barriers. It must not block.
	Enforced func(*sources.ObjectState) Enforcement
}

// Writer writes the status of objects. Make it with New.
type Writer struct {
	config Config
	loop   *refresh.Loop
	limit  flowcontrol.RateLimiter
	// written is the last applied status of each object; the informer may not have it yet.
	written map[types.UID]written
}

type written struct {
	// over is the resource version that the status replaced.
	over   string
	status v1alpha1.Status
}

// New returns a Writer. Run starts it.
func New(config Config) *Writer {
	return &Writer{
		config: config, loop: refresh.New(timing()), written: map[types.UID]written{},
		limit: flowcontrol.NewTokenBucketRateLimiter(writesPerSecond, writesAtOnce),
	}
}

// Changed requests a check soon: after a compile, and when the result of Enforced has changed. It never blocks.
func (w *Writer) Changed() { w.loop.Changed() }

// Run writes each status that differs, until the context ends: at once, after Changed, and every 30 s.
func (w *Writer) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("status"))
	w.loop.Run(ctx, w.Write, func(err error) {
		klog.FromContext(ctx).Error(err, "The status of some objects is not up to date")
	})
}

// Write writes each status that differs. It is not safe for concurrent use.
func (w *Writer) Write(ctx context.Context) error {
	known := map[types.UID]*unstructured.Unstructured{}
	for _, object := range w.config.Known() {
		known[object.GetUID()] = object
	}
	for uid := range w.written {
		if known[uid] == nil {
			delete(w.written, uid)
		}
	}
	var errs []error
	for _, state := range w.config.States() {
		object := known[state.UID]
		if object == nil {
			continue // A user deleted the object after the compile.
		}
		if err := w.write(ctx, object, &state); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: status: %w", state.Kind, state.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// write applies the status of one object if it differs. The resource version makes sure that it replaces the status that it
// compared: if two replicas write at the same time, one gets a conflict and compares again.
func (w *Writer) write(ctx context.Context, object *unstructured.Unstructured, state *sources.ObjectState) error {
	has, err := statusOf(object)
	if err != nil {
		return err
	}
	// A replica with an older state than the writer of the status, or than the informer, does not write.
	if has.ObservedGeneration > state.Generation || object.GetGeneration() != state.Generation {
		return nil
	}
	want := desired(state, w.enforced(state), has, metav1.Now())
	if says(has, want) {
		return nil
	}
	if before, ok := w.written[state.UID]; ok && before.over == object.GetResourceVersion() && says(before.status, want) {
		return nil
	}
	patch, err := patchOf(object, want)
	if err != nil {
		return err
	}
	if err := w.limit.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = w.config.Client.Resource(v1alpha1.GroupVersion.WithResource(resources[state.Kind])).ApplyStatus(ctx, state.Name, patch, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	switch {
	case apierrors.IsNotFound(err):
		return nil // A user deleted the object meanwhile.
	case apierrors.IsConflict(err):
		klog.FromContext(ctx).V(2).Info("Someone else was faster", "kind", state.Kind, "name", state.Name)
		w.loop.Changed()
		return nil
	case err != nil:
		return err
	}
	w.written[state.UID] = written{object.GetResourceVersion(), want}
	return nil
}

// enforced returns a condition that never contradicts Compiled. It does not mention the last valid form in use either. It names what is not known yet.
func (w *Writer) enforced(state *sources.ObjectState) Enforcement {
	out := w.enforcement(state)
	if len(state.Faults) == 0 && len(state.Unmatched) > 0 && out.Status != "" {
		out.Message = cut(out.Message+"; "+message(state.Unmatched), maxMessageLength)
	}
	return out
}

func (w *Writer) enforcement(state *sources.ObjectState) Enforcement {
	switch {
	case len(state.Faults) > 0:
		return Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFaulty, Message: "not in force: " + message(state.Faults)}
	case state.Kind == v1alpha1.ConditionalPolicyKind:
		return w.config.Enforced(state)
	case !state.Bars():
		return Enforcement{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoBarriers, Message: "nothing in it is excluded"}
	case state.Kind == v1alpha1.UncoveredPermissionSetKind && !state.Denies():
		return Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotDenying, Message: "its validationActions let writes pass: set them to [Deny] to refuse writes"}
	case state.Kind == v1alpha1.UncoveredPermissionSetKind && len(state.GuardedFields) == 0:
		return Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNothingGuarded, Message: "no field of a known kind has one of its verbs: install the kinds, or correct the verbs"}
	}
	return w.config.Enforced(state)
}

func statusOf(object *unstructured.Unstructured) (v1alpha1.Status, error) {
	var out v1alpha1.Status
	status, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return out, err
	}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(status, &out)
}

func patchOf(object *unstructured.Unstructured, want v1alpha1.Status) (*unstructured.Unstructured, error) {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	out.SetGroupVersionKind(object.GroupVersionKind())
	out.SetName(object.GetName())
	out.SetUID(object.GetUID())
	out.SetResourceVersion(object.GetResourceVersion())
	return out, nil
}
