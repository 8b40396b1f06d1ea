package interlock

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// releaseRetry is the delay before a failed release is tried again.
const releaseRetry = time.Second

// Release removes the finalizer of a webhook configuration that is being deleted. The finalizer keeps the API servers enforcing
// until no Allow of /authorize can be in use: /authorize gives none after the deletion (Static), an API server may cache one for
// authorizedTTL, and a request that it allowed may take its --request-timeout to reach admission.
type Release struct {
	Client admissionregistrationclient.ValidatingWebhookConfigurationInterface
	// Name is the name of the configuration.
	Name string
	// Delay starts when this process first sees the deletion, by its own clock. It must cover two intervals of the interlock,
	// authorizedTTL and --request-timeout.
	Delay time.Duration
	Clock clock.Clock

	pending atomic.Bool
	// latest is the last configuration that was seen waiting for its release.
	latest  atomic.Pointer[admissionregistrationv1.ValidatingWebhookConfiguration]
	changed chan struct{}
}

// NewRelease returns a Release that waits for Changed.
func NewRelease(client admissionregistrationclient.ValidatingWebhookConfigurationInterface, name string, delay time.Duration, c clock.Clock) *Release {
	return &Release{Client: client, Name: name, Delay: delay, Clock: c, changed: make(chan struct{}, 1)}
}

// Changed must be called with every state of the configuration that is seen. It never blocks.
func (r *Release) Changed(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	if !held(configuration) {
		return
	}
	r.latest.Store(configuration)
	r.pending.Store(true)
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Pending reports whether the configuration is being deleted and not released yet.
func (r *Release) Pending() bool { return r.pending.Load() }

// held reports whether a configuration waits for its release.
func held(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return c != nil && c.DeletionTimestamp != nil && slices.Contains(c.Finalizers, webhooks.Finalizer)
}

// Run releases configurations that are being deleted, until the context ends.
func (r *Release) Run(ctx context.Context) {
	var released types.UID
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			if configuration := r.latest.Load(); configuration.UID != released {
				r.pending.Store(true)
				r.release(ctx, configuration)
				released = configuration.UID
			}
			r.pending.Store(len(r.changed) > 0)
		}
	}
}

// release waits for the delay, then removes the finalizer. It repeats this until it succeeds.
func (r *Release) release(ctx context.Context, configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	log := klog.FromContext(ctx).WithName("release")
	log.Info("The webhook configuration is being deleted: nothing is let through any more, and it is released after a delay", "configuration", r.Name, "delay", r.Delay)
	wait := r.Delay
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.Clock.After(wait):
		}
		err := r.letGo(ctx, configuration.UID)
		if err == nil {
			log.Info("Released the webhook configuration", "configuration", r.Name)
			return
		}
		log.Error(err, "The webhook configuration is not released yet")
		wait = releaseRetry
	}
}

// letGo deletes the configuration for barriers, which no component would maintain any more, and then removes the finalizer. It does
// not change an object with another UID.
func (r *Release) letGo(ctx context.Context, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	current, err := r.Client.Get(ctx, r.Name, metav1.GetOptions{})
	gone := apierrors.IsNotFound(err)
	switch {
	case err != nil && !gone:
		return fmt.Errorf("webhook configuration %q: %w", r.Name, err)
	case !gone && (current.UID != uid || !held(current)):
		return nil
	}
	if err := r.Client.Delete(ctx, webhooks.UncoveredName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("webhook configuration %q: %w", webhooks.UncoveredName, err)
	}
	if gone {
		return nil
	}
	current.Finalizers = slices.DeleteFunc(current.Finalizers, func(f string) bool { return f == webhooks.Finalizer })
	// Another replica may have done the same before.
	if _, err := r.Client.Update(ctx, current, metav1.UpdateOptions{FieldManager: "fieldperm"}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("webhook configuration %q: %w", r.Name, err)
	}
	return nil
}
