package interlock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

func deleting(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	c := granular(t)
	now := metav1Now()
	c.DeletionTimestamp = &now
	c.Finalizers = append(c.Finalizers, "example.com/other")
	return c
}

func TestA5_DeletionIsHeldUntilNothingIsUnderWay(t *testing.T) {
	uncovered := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks.UncoveredName}}
	clients := fake.NewClientset(deleting(t), uncovered)
	configurations := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	clock := clocktesting.NewFakeClock(begin())
	r := NewRelease(configurations, webhooks.RESTName, 90*time.Second, clock)
	fails := 1
	clients.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if fails--; fails >= 0 {
			return true, nil, errors.New("conflict")
		}
		return false, nil, nil
	})
	go r.Run(t.Context())
	r.Changed(granular(t))
	r.Changed(nil)
	if r.Pending() {
		t.Error("a configuration that stays is released")
	}
	r.Changed(deleting(t))
	r.Changed(deleting(t))
	eventually(t, clock.HasWaiters)
	clock.Step(90*time.Second - time.Millisecond)
	holds := func() bool {
		c, err := configurations.Get(t.Context(), webhooks.RESTName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(c.Finalizers, webhooks.Finalizer)
	}
	if !holds() || !r.Pending() {
		t.Error("released too early")
	}
	clock.Step(time.Millisecond)
	eventually(t, func() bool { clock.Step(releaseRetry); return !holds() })
	// Two events about one deletion are one release.
	eventually(t, func() bool { return !r.Pending() })
	c, err := configurations.Get(t.Context(), webhooks.RESTName, metav1.GetOptions{})
	if err != nil || !slices.Equal(c.Finalizers, []string{"example.com/other"}) {
		t.Errorf("finalizers of others: %v, %v", c, err)
	}
	if _, err := configurations.Get(t.Context(), webhooks.UncoveredName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the configuration for barriers stays, and no finalizer keeps it: %v", err)
	}
}

func TestA5_AnotherObjectOfTheNameIsNotReleased(t *testing.T) {
	next := granular(t)
	next.UID = "next"
	clients := fake.NewClientset(next, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks.UncoveredName}})
	configurations := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	r := NewRelease(configurations, webhooks.RESTName, time.Second, clocktesting.NewFakeClock(begin()))
	if err := r.letGo(t.Context(), "u"); err != nil {
		t.Error(err)
	}
	if c, err := configurations.Get(t.Context(), webhooks.RESTName, metav1.GetOptions{}); err != nil || !slices.Contains(c.Finalizers, webhooks.Finalizer) {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := configurations.Get(t.Context(), webhooks.UncoveredName, metav1.GetOptions{}); err != nil {
		t.Errorf("barriers of the new installation are taken away: %v", err)
	}
}

func TestA5_NothingIsReleasedBeforeTheDelayIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset(deleting(t))
		r := NewRelease(clients.AdmissionregistrationV1().ValidatingWebhookConfigurations(), webhooks.RESTName, 90*time.Second, clock.RealClock{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.Run(ctx)
		r.Changed(deleting(t))
		time.Sleep(90*time.Second - time.Millisecond)
		synctest.Wait()
		if !r.Pending() || len(clients.Actions()) > 0 {
			t.Errorf("too early: %v", clients.Actions())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if r.Pending() || len(clients.Actions()) == 0 {
			t.Error("it is not released when the delay is over")
		}
	})
}

func TestA5_TheNextConfigurationIsNotReleasedForTheOneBefore(t *testing.T) {
	next := deleting(t)
	next.UID = "next"
	clients := fake.NewClientset(next)
	r := NewRelease(clients.AdmissionregistrationV1().ValidatingWebhookConfigurations(), webhooks.RESTName, time.Second, clocktesting.NewFakeClock(begin()))
	if err := r.letGo(t.Context(), "u"); err != nil {
		t.Error(err)
	}
	if c, err := r.Client.Get(t.Context(), webhooks.RESTName, metav1.GetOptions{}); err != nil || !slices.Contains(c.Finalizers, webhooks.Finalizer) {
		t.Errorf("let go of before its own time: %v, %v", c, err)
	}
}

// With fieldperm-uncovered, API servers refuse all writes when fieldperm no longer answers.
func TestA5_TheFinalizerStaysUntilTheConfigurationForBarriersIsGone(t *testing.T) {
	uncovered := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks.UncoveredName}}
	clients := fake.NewClientset(deleting(t), uncovered)
	configurations := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	fails := true
	clients.PrependReactor("delete", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fails, nil, errors.New("forbidden")
	})
	r := NewRelease(configurations, webhooks.RESTName, time.Second, clocktesting.NewFakeClock(begin()))
	if r.letGo(t.Context(), "u") == nil {
		t.Error("a deletion that fails is none")
	}
	if c, err := configurations.Get(t.Context(), webhooks.RESTName, metav1.GetOptions{}); err != nil || !slices.Contains(c.Finalizers, webhooks.Finalizer) {
		t.Errorf("let go of although the configuration for barriers is there: %v, %v", c, err)
	}
	fails = false
	if err := r.letGo(t.Context(), "u"); err != nil {
		t.Error(err)
	}
	if _, err := configurations.Get(t.Context(), webhooks.UncoveredName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
