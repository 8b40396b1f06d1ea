package rbac

import (
	"context"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// fakeAPI is an API server with faults. A test may set faults while it serves.
type fakeAPI struct {
	*fake.Clientset

	mu       sync.Mutex
	refuses  map[string]error // by "list resource" and "watch resource"
	watches  map[string][]watch.Interface
	requests map[string]int
	mute     map[string]bool // watches of the resource open and bring nothing
}

func newFakeAPI(objects ...runtime.Object) *fakeAPI {
	api := &fakeAPI{Clientset: fake.NewClientset(objects...), refuses: map[string]error{}, watches: map[string][]watch.Interface{}, requests: map[string]int{}, mute: map[string]bool{}}
	api.PrependReactor("list", "*", func(action ktesting.Action) (bool, runtime.Object, error) {
		api.mu.Lock()
		defer api.mu.Unlock()
		api.requests["list "+action.GetResource().Resource]++
		err := api.refuses["list "+action.GetResource().Resource]
		return err != nil, nil, err
	})
	api.PrependWatchReactor("*", func(action ktesting.Action) (bool, watch.Interface, error) {
		resource := action.GetResource().Resource
		api.mu.Lock()
		defer api.mu.Unlock()
		api.requests["watch "+resource]++
		if err := api.refuses["watch "+resource]; err != nil {
			return true, nil, err
		}
		var w watch.Interface = watch.NewFake()
		if !api.mute[resource] {
			var err error
			if w, err = api.Tracker().Watch(action.GetResource(), action.GetNamespace()); err != nil {
				return true, nil, err
			}
		}
		api.watches[resource] = append(api.watches[resource], w)
		return true, w, nil
	})
	return api
}

// refuse makes the server respond with the error to both list and watch. Open watches stay open.
func (api *fakeAPI) refuse(err error, what ...string) {
	api.mu.Lock()
	defer api.mu.Unlock()
	for _, each := range what {
		api.refuses[each] = err
	}
}

func (api *fakeAPI) setMute(resource string, mute bool) {
	api.mu.Lock()
	defer api.mu.Unlock()
	api.mute[resource] = mute
}

// endWatches ends the open watches of a resource, as a server does when their timeout ends.
func (api *fakeAPI) endWatches(resource string) {
	api.mu.Lock()
	defer api.mu.Unlock()
	for _, w := range api.watches[resource] {
		w.Stop()
	}
	api.watches[resource] = nil
}

func (api *fakeAPI) asked(what string) int {
	api.mu.Lock()
	defer api.mu.Unlock()
	return api.requests[what]
}

// follow runs a Live until the end of the test.
func follow(t testing.TB, api *fakeAPI) (*Live, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	l, err := newLive(api, clock)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l, clock
}

func ready(t testing.TB, api *fakeAPI) (*Live, *clocktesting.FakeClock) {
	t.Helper()
	l, clock := follow(t, api)
	await(t, "ready", func() bool { return l.Ready() == nil })
	return l, clock
}

// patience is longer than the longest delay of a reflector between two lists after an API server was down: twice 30 s.
const patience = 3 * time.Minute

func await(t testing.TB, what string, met func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(context.Background(), 2*time.Millisecond, patience, true, func(context.Context) (bool, error) { return met(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// informerOf returns the informer of a resource.
func informerOf(l *Live, resource string) *informer {
	for _, i := range l.informers {
		if i.resource == resource {
			return i
		}
	}
	return nil
}

func lostWatch(i *informer) bool { return i.lost.Load() != nil }

func clusterRole(name string, verbs ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}},
	}
}

func role(namespace, name string, verbs ...string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: clusterRole("", verbs...).Rules}
}

func clusterRoleBinding(name, role string, users ...string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	for _, u := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u})
	}
	return b
}

func roleBinding(namespace, name, role string, users ...string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}}
	b.Subjects = clusterRoleBinding("", "", users...).Subjects
	return b
}

// may reports whether the user has the verb on deployments of the namespace, with the reason.
func may(t testing.TB, a authorizer.Authorizer, name, verb, namespace string) (bool, string) {
	t.Helper()
	decision, reason, err := a.Authorize(context.Background(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: name}, Verb: verb, Namespace: namespace, APIGroup: "apps", Resource: "deployments", Name: "web", ResourceRequest: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return decision == authorizer.DecisionAllow, reason
}

func holds(t testing.TB, a authorizer.Authorizer, name, verb, namespace string) bool {
	t.Helper()
	yes, _ := may(t, a, name, verb, namespace)
	return yes
}
