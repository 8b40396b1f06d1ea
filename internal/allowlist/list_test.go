package allowlist

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

func list(groupVersion string, resources ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: resources}
}

func r(name string, verbs ...string) metav1.APIResource {
	return metav1.APIResource{Name: name, Verbs: verbs}
}

func served() []*metav1.APIResourceList {
	scale := r("deployments/scale", "get", "patch", "update")
	scale.Group, scale.Version = "autoscaling", "v1"
	return []*metav1.APIResourceList{
		nil,
		list("v1", r("pods", "create", "get", "list", "patch", "update"), r("pods/status", "get", "patch", "update"), r("pods/binding", "create"), r("pods/eviction", "create"),
			r("pods/exec", "create", "get"), r("pods/proxy", "create", "get", "patch", "update"), r("pods/resize", "get", "patch", "update"), r("pods/log", "get"),
			r("bindings", "create"), r("componentstatuses", "get", "list"), r("serviceaccounts", "create", "get"), r("serviceaccounts/token", "create"), r("namespaces/finalize", "update"), r("*", "get", "update")),
		list("apps/v1", r("deployments", "create", "get"), scale),
		list("apps/v1beta1", r("oldthings", "get", "patch")),
		list("authorization.k8s.io/v1", r("subjectaccessreviews", "create", "get")),
		list("authentication.k8s.io/v1", r("tokenreviews", "create", "get")),
		list("admissionregistration.k8s.io/v1", r("validatingwebhookconfigurations", "create", "get", "update")),
		list("metrics.example.com/v1", r("things", "get", "update")),
		list("a/b/c", r("x", "get", "update")),
	}
}

func TestA1_A2_Allowlist(t *testing.T) {
	l := Build(served(), []string{"metrics.example.com"}, nil)
	for _, c := range []struct {
		group, resource, subresource string
		want                         bool
	}{
		{"", "pods", "", true}, {"", "pods", "status", true}, {"", "pods", "resize", true}, {"apps", "deployments", "", true},
		{"apps", "deployments", "scale", true}, {"autoscaling", "deployments", "scale", false}, {"apps", "oldthings", "", true}, {"", "serviceaccounts", "", true},
		{"", "pods", "binding", false}, {"", "pods", "eviction", false}, {"", "pods", "exec", false}, {"", "pods", "proxy", false}, {"", "pods", "log", false},
		{"", "bindings", "", false}, {"", "componentstatuses", "", false}, {"", "serviceaccounts", "token", false},
		// The list has no namespaces, so it has no subresource of theirs.
		{"", "namespaces", "finalize", false},
		{"", "*", "", false}, {"*", "pods", "", false}, {"", "pods", "*", false}, {"", "", "", false}, {"", "pods/status", "", false},
		{"authorization.k8s.io", "subjectaccessreviews", "", false}, {"authentication.k8s.io", "tokenreviews", "", false},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", false}, {"metrics.example.com", "things", "", false}, {"a", "x", "", false},
	} {
		if got := l.Has(c.group, c.resource, c.subresource); got != c.want {
			t.Errorf("%q %q %q: %t", c.group, c.resource, c.subresource, got)
		}
	}
}

func TestA2_NamedAggregatedGroupIsListed(t *testing.T) {
	if !Build(served(), []string{"metrics.example.com"}, []string{"metrics.example.com"}).Has("metrics.example.com", "things", "") {
		t.Error("a group that was named is left out")
	}
	if Build(served(), nil, []string{"authorization.k8s.io"}).Has("authorization.k8s.io", "subjectaccessreviews", "") {
		t.Error("reviews can be named")
	}
}

func TestA2_GroupIsAggregatedIfOneVersionIs(t *testing.T) {
	service := func(group string, remote any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": group, "service": remote}}}
	}
	services := servicesOf([]unstructured.Unstructured{service("apps", nil), service("x", nil), service("x", map[string]any{"name": "s"}), service("x", map[string]any{"name": "s"}), {}})
	if got := services.aggregatedGroups(); len(got) != 1 || got[0] != "x" {
		t.Errorf("got %q", got)
	}
}

func TestA1_NoListAllowsNothing(t *testing.T) {
	var none *List
	if none.Has("", "pods", "") || (&List{}).Has("", "pods", "") || none.Len() != 0 {
		t.Error("an empty list allows")
	}
}

type fakeServer struct {
	lists []*metav1.APIResourceList
	err   error
}

func (s *fakeServer) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return nil, s.lists, s.err
}

func TestA1_AFailureKeepsTheListAPartialFailureRemovesGroups(t *testing.T) {
	server := &fakeServer{err: errors.New("down")}
	var aggregationErr error
	w := NewWatcher(server, func(context.Context) (Services, error) { return Services{}, aggregationErr }, nil)
	if err := w.Refresh(t.Context()); err == nil || w.Ready() == nil || w.Allowlist().Has("", "pods", "") {
		t.Fatalf("refresh %v, ready %v", err, w.Ready())
	}
	server.lists, server.err = served(), nil
	aggregationErr = errors.New("forbidden")
	if err := w.Refresh(t.Context()); err == nil || w.Ready() == nil {
		t.Fatal("a list was made although the aggregated groups are not known")
	}
	aggregationErr = nil
	if err := w.Refresh(t.Context()); err != nil || w.Ready() != nil || !w.Allowlist().Has("", "pods", "") {
		t.Fatalf("refresh %v, ready %v", err, w.Ready())
	}
	server.err = errors.New("down")
	if err := w.Refresh(t.Context()); err == nil || !w.Allowlist().Has("", "pods", "") {
		t.Fatalf("refresh %v: the list is gone", err)
	}
	server.lists, server.err = served()[2:3], &discovery.ErrGroupDiscoveryFailed{Groups: map[runtimeschema.GroupVersion]error{{Version: "v1"}: errors.New("broken")}}
	if err := w.Refresh(t.Context()); err != nil || w.Allowlist().Has("", "pods", "") || !w.Allowlist().Has("apps", "deployments", "") {
		t.Fatalf("refresh %v", err)
	}
}

func TestA1_WatcherRefreshesOnSignal(t *testing.T) {
	refreshed := make(chan struct{})
	server := &fakeServer{lists: served()}
	w := NewWatcher(server, func(ctx context.Context) (Services, error) {
		select {
		case refreshed <- struct{}{}:
		case <-ctx.Done():
		}
		return Services{}, nil
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	<-refreshed
	w.Changed()
	w.Changed()
	<-refreshed
	cancel()
	<-done
}

// Resources of aggregated API servers are proven separately (A5), so the list must mark them.
func TestA5_TheListNamesTheServerOfEachGroup(t *testing.T) {
	l := Build(served(), []string{"metrics.example.com"}, []string{"metrics.example.com"})
	if s, ok := l.Served("metrics.example.com", "things"); !ok || !s.Aggregated || s.Version != "v1" {
		t.Errorf("of another server: %+v, %t", s, ok)
	}
	if s, ok := l.Served("apps", "deployments"); !ok || s.Aggregated {
		t.Errorf("of kube-apiserver: %+v, %t", s, ok)
	}
}
