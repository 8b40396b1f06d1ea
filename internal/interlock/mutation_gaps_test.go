package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/generators"
)

// What follows are cases that test/mutation showed to be missing elsewhere: each of them is about one
// small mistake that no other test would notice.

func TestA5_AServiceIsCalledAtThePathOfGranularOnly(t *testing.T) {
	for name, path := range map[string]*string{"another": new(generators.UncoveredPath), "none": nil} {
		c := granular(t)
		c.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "n", Name: "s", Path: path}}
		if err := Static(c, nil); err == nil || !strings.Contains(err.Error(), "call") {
			t.Errorf("%s path: %v", name, err)
		}
	}
}

// The proof of the servers may run out while a resource is proven.
func TestA5_AProofOfAResourceDoesNotProlongThatOfTheServers(t *testing.T) {
	w := newWorld(t, true)
	w.close(t)
	w.clock.Step(2*testInterval - time.Second)
	w.apis[0].set(func(t Target) string {
		if t.Resource == "secrets" {
			w.clock.Step(time.Second)
		}
		return ""
	})
	if w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", "web")) == nil {
		t.Error("let through on a round that has run out")
	}
}

// Nothing but the opening itself tells a round that it does not know of the server.
func TestA5_ARoundDoesNotProveAServerThatCameMeanwhile(t *testing.T) {
	w := newWorld(t, true)
	w.close(t)
	third := newAPIServer(t, w.canaries)
	once := sync.OnceFunc(func() {
		w.set(func() { w.servers = append(w.servers, third.server(t)) })
		w.ServersChanged()
	})
	w.apis[0].set(func(Target) string { once(); return "" })
	w.round(t.Context())
	w.mustBe(t, false, "a server came during the round")
	if third.count() > 0 {
		t.Error("the round was about the new server")
	}
	w.round(t.Context())
	w.mustBe(t, true, "proven too")
}

// Opened and closed again while a canary is under way: it was sent before the change.
func TestA5_ACanarySentBeforeAChangeProvesNothing(t *testing.T) {
	w := newWorld(t, true)
	w.close(t)
	w.apis[0].set(func(t Target) string {
		if t.Resource == "secrets" {
			w.open(ReasonSettling, errors.New("changed"))
			w.Interlock.mu.Lock()
			defer w.Interlock.mu.Unlock()
			w.store(&state{until: w.clock.Now().Add(testInterval)})
		}
		return ""
	})
	if w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", "web")) == nil {
		t.Error("let through on a canary that was sent before the change")
	}
	if err := w.Status(); err != nil {
		t.Error(err)
	}
}

func TestA5_WhatDidNotExistIsProvenOnceItDoes(t *testing.T) {
	w := newWorld(t, true)
	w.close(t)
	all := func(fault func(Target) string) {
		for _, api := range w.apis {
			api.set(fault)
		}
	}
	updates := func(fault string) func(Target) string {
		return func(t Target) string {
			return map[bool]string{true: fault}[t.Resource == "deployments" && t.Operation == admissionv1.Update]
		}
	}
	ask := func() error { return w.Enforced(t.Context(), asking("patch", elsewhere, "deployments", "new")) }
	all(updates("not found"))
	if err := ask(); err != nil {
		t.Error(err)
	}
	// It was created meanwhile, and updates are not looked at.
	all(updates("passes"))
	if ask() == nil {
		t.Error("it is remembered that there is no such object")
	}
}

// Whatever opens it may have been a manifest with another failurePolicy.
func TestA5_TheWebhooksErrorIsTriedAgainAfterAnOpening(t *testing.T) {
	w := newWorld(t, true)
	w.close(t)
	ask := func() error { return w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", "web")) }
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	for _, api := range w.apis {
		api.set(func(t Target) string { return map[bool]string{true: "ignored"}[t.Resource == "secrets"] })
	}
	w.open(ReasonCanaryError, errPassed)
	w.round(t.Context())
	if ask() == nil {
		t.Error("failurePolicy Ignore is let through after an opening")
	}
}

func TestA5_ProofsAreBounded(t *testing.T) {
	r := resources{known: map[Target]*proof{}}
	for n := range maxProofs + 10 {
		r.remember(Target{Name: fmt.Sprint(n)}, &proof{})
	}
	if len(r.known) != maxProofs {
		t.Errorf("%d proofs are remembered", len(r.known))
	}
	again := &proof{}
	if r.remember(Target{Name: "0"}, again); r.known[Target{Name: "0"}] != again {
		t.Error("what is known is not renewed")
	}
}

func TestA5_NothingIsReleasedBeforeTheDelayIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset(deleting(t))
		r := NewRelease(clients.AdmissionregistrationV1().ValidatingWebhookConfigurations(), generators.RESTName, 90*time.Second, clock.RealClock{})
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
	r := NewRelease(clients.AdmissionregistrationV1().ValidatingWebhookConfigurations(), generators.RESTName, time.Second, clocktesting.NewFakeClock(begin()))
	if err := r.letGo(t.Context(), "u"); err != nil {
		t.Error(err)
	}
	if c, err := r.Client.Get(t.Context(), generators.RESTName, metav1.GetOptions{}); err != nil || !slices.Contains(c.Finalizers, generators.Finalizer) {
		t.Errorf("let go of before its own time: %v, %v", c, err)
	}
}

// fieldperm-uncovered makes API servers refuse everyone once nobody answers.
func TestA5_TheFinalizerStaysUntilTheConfigurationForBarriersIsGone(t *testing.T) {
	uncovered := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: generators.UncoveredName}}
	clients := fake.NewClientset(deleting(t), uncovered)
	configurations := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	fails := true
	clients.PrependReactor("delete", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fails, nil, errors.New("forbidden")
	})
	r := NewRelease(configurations, generators.RESTName, time.Second, clocktesting.NewFakeClock(begin()))
	if r.letGo(t.Context(), "u") == nil {
		t.Error("a deletion that fails is none")
	}
	if c, err := configurations.Get(t.Context(), generators.RESTName, metav1.GetOptions{}); err != nil || !slices.Contains(c.Finalizers, generators.Finalizer) {
		t.Errorf("let go of although the configuration for barriers is there: %v, %v", c, err)
	}
	fails = false
	if err := r.letGo(t.Context(), "u"); err != nil {
		t.Error(err)
	}
	if _, err := configurations.Get(t.Context(), generators.UncoveredName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
