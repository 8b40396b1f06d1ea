package rbac

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

var someQuestion = authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "alice"}, Verb: "granular:scale", APIGroup: "apps", Resource: "deployments", ResourceRequest: true}

// requireError fails the test unless every check returns an error that names the resource and the cure.
func requireError(t *testing.T, l *Live, parts ...string) {
	t.Helper()
	decision, reason, err := l.Authorize(context.Background(), someQuestion)
	if decision != authorizer.DecisionDeny || reason != "" || err == nil {
		t.Fatalf("got %v %q %v, want an error", decision, reason, err)
	}
	if d := l.ConditionsAwareAuthorize(context.Background(), someQuestion); !d.IsDeny() || d.Error() == nil {
		t.Errorf("got %v, want an error", d)
	}
	if ready := l.Ready(); ready == nil || ready.Error() != err.Error() {
		t.Errorf("Ready: %v, but answers: %v", ready, err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(rbacv1.Resource(resource), "", errors.New("not granted"))
}

func TestP4_ErrorUntilAllFourAreRead(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			api := newFakeAPI(clusterRole("scaler", "*"), clusterRoleBinding("scalers", "scaler", "alice"))
			api.refuse(forbidden(resource), "list "+resource)
			l, clock := follow(t, api)
			for _, i := range l.informers {
				if i.resource != resource {
					await(t, i.resource, func() bool { return i.current() == nil })
				}
			}
			await(t, "a failure", func() bool { return strings.Contains(l.Ready().Error(), "not granted") })
			requireError(t, l, "RBAC: "+resource+".rbac.authorization.k8s.io have not been read yet: ", "rbac.yaml of fieldperm-gen manifests")
			clock.Step(time.Hour)
			requireError(t, l, "have not been read yet")
			api.refuse(nil, "list "+resource)
			await(t, "ready", func() bool { return l.Ready() == nil })
			if !holds(t, l, "alice", "get", "") {
				t.Error("not allowed")
			}
		})
	}
}

func TestP4_ErrorBeforeRunAndFromTheZeroValue(t *testing.T) {
	t.Parallel()
	l, err := NewLive(newFakeAPI())
	if err != nil {
		t.Fatal(err)
	}
	requireError(t, l, "have not been read yet")
	requireError(t, &Live{}, "NewLive")
}

func TestP4_ErrorWhereWatchIsNotGranted(t *testing.T) {
	t.Parallel()
	api := newFakeAPI()
	api.refuse(forbidden("roles"), "watch roles")
	l, _ := follow(t, api)
	roles := informerOf(l, "roles")
	await(t, "two lists", func() bool { return roles.shared.HasSynced() && api.asked("list roles") > 1 })
	requireError(t, l, "RBAC: roles.rbac.authorization.k8s.io have not been read yet", "not granted", "rbac.yaml")
}

func TestP4_ErrorOnceTheWatchIsLostForLongerThanTheGrace(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(clusterRole("scaler", "*"), clusterRoleBinding("scalers", "scaler", "alice"))
	l, clock := ready(t, api)
	bindings := informerOf(l, "clusterrolebindings")

	api.refuse(errors.New("connection reset"), "list clusterrolebindings", "watch clusterrolebindings")
	api.endWatches("clusterrolebindings")
	await(t, "lost", func() bool { return lostWatch(bindings) })
	clock.Step(grace)
	if !holds(t, l, "alice", "granular:scale", "") {
		t.Error("not allowed within the grace")
	}
	await(t, "a failure", func() bool {
		bindings.mu.Lock()
		defer bindings.mu.Unlock()
		return bindings.failure != nil
	})
	clock.Step(time.Nanosecond)
	requireError(t, l, `RBAC: clusterrolebindings.rbac.authorization.k8s.io have not been watched for 30s: connection reset: see that`)

	// This deletion has no event. Informers report it later, as cache.DeletedFinalStateUnknown.
	if err := api.Tracker().Delete(rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), "", "scalers"); err != nil {
		t.Fatal(err)
	}

	// A successful list is not sufficient; a watch must be open.
	api.refuse(nil, "list clusterrolebindings")
	lists := api.asked("list clusterrolebindings")
	await(t, "another list", func() bool { return api.asked("list clusterrolebindings") > lists })
	requireError(t, l, "have not been watched for 30s")

	api.refuse(nil, "watch clusterrolebindings")
	await(t, "ready", func() bool { return l.Ready() == nil })
	await(t, "no longer allowed", func() bool { return !holds(t, l, "alice", "granular:scale", "") })
}

func TestP4_WatchesThatCloseAndReopenAreNoFailure(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(clusterRole("scaler", "*"), clusterRoleBinding("scalers", "scaler", "alice"))
	l, clock := ready(t, api)
	for range 2 {
		clock.Step(2 * brief)
		before := map[*informer]int{}
		for _, i := range l.informers {
			before[i] = api.asked("watch " + i.resource)
			api.endWatches(i.resource)
		}
		for _, i := range l.informers {
			await(t, i.resource, func() bool { return api.asked("watch "+i.resource) > before[i] && !lostWatch(i) })
		}
		clock.Step(grace + time.Second)
		if !holds(t, l, "alice", "granular:scale", "") {
			t.Error("not allowed")
		}
	}
}

func TestP4_SilentWatchEndsInAList(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(clusterRole("scaler", "*"), clusterRoleBinding("scalers", "scaler", "alice"))
	api.setMute("clusterrolebindings", true)
	l, clock := ready(t, api)
	if err := api.Tracker().Delete(rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), "", "scalers"); err != nil {
		t.Fatal(err)
	}
	lists := api.asked("list clusterrolebindings")
	clock.Step(silence - time.Second)
	if !holds(t, l, "alice", "granular:scale", "") || api.asked("list clusterrolebindings") != lists {
		t.Fatal("the watch is not silent, and shows nothing")
	}
	clock.Step(time.Second)
	await(t, "no longer allowed", func() bool { return l.Ready() == nil && !holds(t, l, "alice", "granular:scale", "") })
}

func TestP4_SilenceBeginsAnewWithEachEvent(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Now())
	l, err := newLive(newFakeAPI(), clock)
	if err != nil {
		t.Fatal(err)
	}
	source := watch.NewFake()
	w := observe(source, informerOf(l, "roles"), false)
	defer w.Stop()
	await(t, "the timer", clock.HasWaiters)
	for range 3 {
		clock.Step(silence - time.Second)
		go source.Action(watch.Bookmark, &rbacv1.Role{})
		if event := <-w.ResultChan(); event.Type != watch.Bookmark {
			t.Fatalf("got %v, want a bookmark", event)
		}
	}
	clock.Step(silence)
	event := <-w.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v, want the version to have expired", event)
	}
	if _, open := <-w.ResultChan(); open || !source.IsStopped() {
		t.Error("goes on after it has expired")
	}
}

// TestP4_StateOfAnAPIServerRestoredFromABackup: after a restore the resource versions are lower than before.
func TestP4_StateOfAnAPIServerRestoredFromABackup(t *testing.T) {
	t.Parallel()
	api := newFakeAPI()
	list := func(version string, b ...*rbacv1.ClusterRoleBinding) *rbacv1.ClusterRoleBindingList {
		out := &rbacv1.ClusterRoleBindingList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
		for _, each := range b {
			each.ResourceVersion = version
			out.Items = append(out.Items, *each)
		}
		return out
	}
	answers := make(chan *rbacv1.ClusterRoleBindingList, 1)
	answers <- list("1000", clusterRoleBinding("new", "scaler", "alice"))
	api.PrependReactor("list", "clusterrolebindings", func(action ktesting.Action) (bool, runtime.Object, error) {
		asked := action.(ktesting.ListActionImpl).ListOptions.ResourceVersion
		if asked == "1000" {
			tooLarge := apierrors.NewTimeoutError("Too large resource version: 1000, current: 5", 1)
			tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
			return true, nil, tooLarge
		}
		return true, <-answers, nil
	})
	if err := api.Tracker().Add(clusterRole("scaler", "*")); err != nil {
		t.Fatal(err)
	}
	l, _ := ready(t, api)
	if !holds(t, l, "alice", "granular:scale", "") {
		t.Fatal("not allowed at first")
	}
	answers <- list("5", clusterRoleBinding("old", "scaler", "bob"))
	api.mu.Lock()
	open := api.watches["clusterrolebindings"]
	api.mu.Unlock()
	expired := apierrors.NewResourceExpired("too old resource version")
	open[len(open)-1].(interface{ Error(runtime.Object) }).Error(&expired.ErrStatus)
	await(t, "the old state", func() bool {
		return holds(t, l, "bob", "granular:scale", "") && !holds(t, l, "alice", "granular:scale", "")
	})
}

func TestP4_ErrorOnceRunHasEnded(t *testing.T) {
	t.Parallel()
	api := newFakeAPI()
	l, err := NewLive(api)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	await(t, "ready", func() bool { return l.Ready() == nil })
	cancel()
	<-done
	for _, i := range l.informers {
		if !lostWatch(i) {
			t.Errorf("%s: counts as watched", i)
		}
	}
}

func TestP4_BriefWatchesDoNotCount(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*watch.FakeWatcher){
		"closed": func(w *watch.FakeWatcher) { w.Stop() },
		"error": func(w *watch.FakeWatcher) {
			w.Error(&apierrors.NewInternalError(errors.New("broken")).ErrStatus)
			w.Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, clock := ready(t, newFakeAPI())
			i := informerOf(l, "roles")
			first := i.open
			// The first watch lives long enough to count, the others do not.
			clock.Step(brief)
			i.closed(first)
			lost := *i.lost.Load()
			if lost.Before(first.since.Add(brief)) {
				t.Fatalf("lost at %v", lost)
			}
			for range 10 {
				clock.Step(4 * time.Second)
				source := watch.NewFake()
				w := observe(source, i, false)
				if lostWatch(i) {
					t.Fatal("is open and counts as lost")
				}
				go end(source)
				for range w.ResultChan() {
				}
				if !lostWatch(i) || !i.lost.Load().Equal(lost) {
					t.Fatalf("lost at %v, want %v", i.lost.Load(), lost)
				}
			}
			requireError(t, l, "have not been watched for 40s: watch: ")

			source := watch.NewFake()
			w := observe(source, i, false)
			go func() {
				source.Add(role("shop", "a"))
				source.Stop()
			}()
			for range w.ResultChan() {
			}
			if !i.lost.Load().Equal(clock.Now()) {
				t.Errorf("a watch that showed something: lost at %v, want %v", i.lost.Load(), clock.Now())
			}
			clock.Step(grace + time.Second)
			requireError(t, l, "have not been watched for 31s: see that")

			w = observe(watch.NewFake(), i, false)
			clock.Step(brief)
			w.Stop()
			if !i.lost.Load().Equal(clock.Now()) {
				t.Errorf("a watch that was quiet: lost at %v, want %v", i.lost.Load(), clock.Now())
			}
			i.saw(w, &watch.Event{Type: watch.Added, Object: role("shop", "a")})
			if !lostWatch(i) {
				t.Error("an event that comes after the end opens the watch again")
			}
		})
	}
}

func TestP4_InitialEventsAreNoNews(t *testing.T) {
	t.Parallel()
	l, err := NewLive(newFakeAPI())
	if err != nil {
		t.Fatal(err)
	}
	i := informerOf(l, "roles")
	source := watch.NewFake()
	w := observe(source, i, true)
	defer w.Stop()
	pass := func(send func(runtime.Object), object runtime.Object) {
		t.Helper()
		go send(object)
		<-w.ResultChan()
	}
	pass(source.Add, role("shop", "a"))
	pass(func(o runtime.Object) { source.Action(watch.Bookmark, o) }, &rbacv1.Role{})
	if !lostWatch(i) {
		t.Fatal("counts as open while initial events come")
	}
	end := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	pass(source.Add, end.DeepCopy())
	if !lostWatch(i) {
		t.Fatal("an object's annotation ends the initial events")
	}
	pass(func(o runtime.Object) { source.Action(watch.Bookmark, o) }, end)
	if lostWatch(i) {
		t.Fatal("does not count as open after the initial events")
	}
	pass(source.Modify, role("shop", "a"))
	// An open watch does not mean that its events have been stored.
	if err := i.current(); err == nil || !strings.Contains(err.Error(), "have not been read yet") {
		t.Errorf("not yet stored: %v", err)
	}
	w.Stop()
	w.Stop()
	if !lostWatch(i) {
		t.Error("counts as open after its end")
	}
}
