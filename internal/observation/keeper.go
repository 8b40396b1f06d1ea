package observation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/refresh"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

const (
	// interval is the longest time until a change of the configuration by others is noticed.
	interval = 5 * time.Second
	// settled is how long API servers may take to receive new rules by their watches.
	settled = 2 * time.Second
	// attemptTimeout bounds one attempt to read and write.
	attemptTimeout = 15 * time.Second
	// flushTimeout bounds the last write of the statuses.
	flushTimeout = 5 * time.Second
)

// Kinds returns the kind of observations, by resource.
func Kinds() map[string]string {
	return map[string]string{v1alpha1.PermissionObservationResource: v1alpha1.PermissionObservationKind}
}

// Config configures a Keeper. All fields are required.
type Config struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// List returns the observations of the API server from an informer, which may run until the context ends. Known returns those that the
	// informer has, without a request.
	List  func(context.Context) ([]*unstructured.Unstructured, error)
	Known func() []*unstructured.Unstructured
	// Reach returns how API servers call a path of fieldperm, and the owners of the configuration. See uncovered.Keeper.
	Reach func(ctx context.Context, path string) (admissionregistrationv1.WebhookClientConfig, []metav1.OwnerReference, error)
	// Tried returns the rules for sets that do not refuse writes.
	Tried    func() []v1alpha1.ResourceRule
	Recorder *Recorder
	Clock    clock.PassiveClock
}

// Keeper maintains the webhook configuration for observations, and the status of the observations. Make it with NewKeeper.
type Keeper struct {
	config Config
	loop   *refresh.Loop

	mu sync.Mutex // guards everything below: the loop and the last write
	// wanted is the configuration that was last found or written, and applied is when: API servers ask about its requests from then on.
	wanted  *admissionregistrationv1.ValidatingWebhookConfiguration
	applied time.Time
	// stood is when the configuration was last found as it should be, and found says which one that was.
	stood    time.Time
	found    generation
	fault    string
	begun    time.Time
	statuses map[types.UID]*known
}

// generation names the content of one object. An object that is made again has another UID.
type generation struct {
	uid    types.UID
	number int64
}

// NewKeeper returns a Keeper. Run starts it.
func NewKeeper(config Config) *Keeper {
	return &Keeper{
		config: config, statuses: map[types.UID]*known{},
		loop: refresh.New(refresh.Timing{Interval: interval, Settle: 100 * time.Millisecond, FirstRetry: time.Second, LastRetry: interval}),
	}
}

// Changed must be called when observations, sets or schemas may have changed. It never blocks.
func (k *Keeper) Changed() { k.loop.Changed() }

// Run maintains the configuration and the statuses until the context ends. Then it writes what was seen last.
func (k *Keeper) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("observation"))
	k.begun = k.config.Clock.Now()
	k.loop.Run(ctx, k.keep, func(err error) {
		klog.FromContext(ctx).Error(err, "Observations are not up to date")
	})
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := k.writeStatuses(flush, decode(ctx, k.config.Known()), true); err != nil {
		klog.FromContext(ctx).Error(err, "The last counts of some observations are lost")
	}
}

func (k *Keeper) keep(ctx context.Context) error {
	list, err := k.config.List(ctx)
	if err != nil {
		return err
	}
	objects := decode(ctx, list)
	k.config.Recorder.follow(objects)
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	err = k.configure(attempt, objects)
	k.mu.Lock()
	k.fault = ""
	if err != nil {
		k.fault = shorten.Within(err.Error(), maxMessage)
	}
	k.mu.Unlock()
	if errors.Is(err, uncovered.ErrNoOwner) {
		err = nil // It is being uninstalled, or is not installed yet.
	}
	return errors.Join(err, k.writeStatuses(attempt, objects, false))
}

// decode returns the observations, in the order of their names.
func decode(ctx context.Context, list []*unstructured.Unstructured) []*v1alpha1.PermissionObservation {
	out := make([]*v1alpha1.PermissionObservation, 0, len(list))
	for _, u := range list {
		object := &v1alpha1.PermissionObservation{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
			klog.FromContext(ctx).Error(err, "An observation cannot be read", "name", u.GetName())
			continue
		}
		out = append(out, object)
	}
	slices.SortFunc(out, func(a, b *v1alpha1.PermissionObservation) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// configure writes the webhook configuration if it is not as it should be. If the API server rejects what observations say, kube-apiserver
// is to ask about all updates: one observation must not stop the others. Recorder and reviewer then leave out what is not observed.
func (k *Keeper) configure(ctx context.Context, objects []*v1alpha1.PermissionObservation) error {
	observed := webhooks.Observed{Tried: k.config.Tried()}
	for _, o := range objects {
		s := v1alpha1.NewSubjects(o.Spec.Subjects)
		observed.Users, observed.Groups = append(observed.Users, s.Users...), append(observed.Groups, s.Groups...)
		observed.Resources = append(observed.Resources, o.Spec.Resources...)
	}
	live, err := uncovered.Read(ctx, k.config.Client, webhooks.ObservedName)
	if err != nil {
		return err
	}
	if live == nil && len(objects) == 0 && len(observed.Tried) == 0 {
		return nil
	}
	err = k.apply(ctx, live, observed)
	if isInvalid(err) {
		klog.FromContext(ctx).Info("The rules for observations are rejected, so all updates are asked about", "cause", shorten.Within(err.Error(), maxMessage))
		observed.Everything = true
		err = k.apply(ctx, live, observed)
	}
	return err
}

// isInvalid reports whether an API server rejects the content of an object.
func isInvalid(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// apply writes one form of the configuration if live is another.
func (k *Keeper) apply(ctx context.Context, live *admissionregistrationv1.ValidatingWebhookConfiguration, observed webhooks.Observed) error {
	want, err := k.configuration(ctx, observed)
	if err != nil {
		return err
	}
	now := k.config.Clock.Now()
	if uncovered.Same(live, want) {
		k.noteReplaced(want, live, now)
		k.noteApplied(want, live, now)
		return nil
	}
	k.noteChanged(live, now)
	written, err := uncovered.Write(ctx, k.config.Client, live, want)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		k.Changed()
		return nil
	}
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Wrote the rules for observations", "configuration", want.Name, "webhooks", len(want.Webhooks))
	k.noteApplied(want, written, now)
	return nil
}

func (k *Keeper) configuration(ctx context.Context, observed webhooks.Observed) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	var owners []metav1.OwnerReference
	var failed error
	out := webhooks.ObservedConfiguration(func(path string) admissionregistrationv1.WebhookClientConfig {
		client, by, err := k.config.Reach(ctx, path)
		owners, failed = by, errors.Join(failed, err)
		return client
	}, observed)
	out.OwnerReferences = owners
	return out, failed
}

// noteApplied records that the configuration is as it should be.
func (k *Keeper) noteApplied(want, live *admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted == nil || !uncovered.Same(k.wanted, want) {
		k.wanted, k.applied = want, now
	}
	k.stood, k.found = now, generation{live.UID, live.Generation}
}

// noteChanged records a gap if the configuration is not as fieldperm left it. If it is, only what fieldperm wants has changed. Of a replica
// that wants something else for a moment, the configuration is a gap too.
func (k *Keeper) noteChanged(live *admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.wanted == nil || k.stood.IsZero():
	case live == nil:
		k.missed("deleted", now)
	case !uncovered.Same(live, k.wanted):
		k.missed("changed", now)
	case k.found != (generation{live.UID, live.Generation}):
		k.missed("replaced", now)
	}
}

// noteReplaced records a gap if the configuration is as it was, but another client has deleted and made it, or changed it and changed it back.
func (k *Keeper) noteReplaced(want, live *admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted != nil && uncovered.Same(k.wanted, want) && !k.stood.IsZero() && k.found != (generation{live.UID, live.Generation}) {
		k.missed("replaced", now)
	}
}

// missed records a gap since the configuration was last found as it should be. k.mu is held.
func (k *Keeper) missed(what string, now time.Time) {
	reason := "the webhook configuration " + webhooks.ObservedName + " was " + what
	k.config.Recorder.Missed(v1alpha1.ObservationGap{From: metav1.NewTime(k.stood.Truncate(time.Second)), To: metav1.NewTime(now.Truncate(time.Second)), Reason: reason})
}
