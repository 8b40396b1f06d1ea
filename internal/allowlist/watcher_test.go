package allowlist

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
)

type shuffled struct {
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
}

func (s *shuffled) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return s.groups, s.lists, nil
}

// client-go returns the lists of aggregated discovery in any order.
func TestA5_ProbesGoToTheVersionThatTheServerPrefers(t *testing.T) {
	version := func(name string) metav1.GroupVersionForDiscovery {
		return metav1.GroupVersionForDiscovery{GroupVersion: "autoscaling/" + name, Version: name}
	}
	old, preferred, other := list("autoscaling/v1", r("hpas", "get", "patch")), list("autoscaling/v2", r("hpas", "get", "patch")), list("new.example.com/v1", r("things", "get", "patch"))
	for _, lists := range [][]*metav1.APIResourceList{{old, preferred, other}, {preferred, old}, {nil, other, old, preferred}} {
		server := &shuffled{groups: []*metav1.APIGroup{{Name: "autoscaling", Versions: []metav1.GroupVersionForDiscovery{version("v2"), version("v1")}}}, lists: lists}
		w := NewWatcher(server, func(context.Context) (Services, error) { return Services{}, nil }, nil)
		if err := w.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if served, ok := w.Allowlist().Served("autoscaling", "hpas"); !ok || served.Version != "v2" || !slices.Equal(served.Versions, []string{"v2", "v1"}) {
			t.Errorf("served %+v, %t", served, ok)
		}
		if len(lists) > 2 && !w.Allowlist().Has("new.example.com", "things", "") {
			t.Error("a list of a group that is not among the groups is lost")
		}
	}
}

// TestA5_ADefinitionInABuiltInGroupIsNotServed: such a version is not served, although the API server prefers it in
// its lists.
func TestA5_ADefinitionInABuiltInGroupIsNotServed(t *testing.T) {
	service := func(group, version, managed string, remote any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{AutoManaged: managed}},
			"spec":     map[string]any{"group": group, "version": version, "service": remote},
		}}
	}
	services := servicesOf([]unstructured.Unstructured{
		service("networking.k8s.io", "v1", "onstart", nil), service("networking.k8s.io", "v9", "true", nil),
		service("example.com", "v1", "true", nil), service("metrics.example.com", "v1", "", map[string]any{"name": "s"}),
	})
	lists := []*metav1.APIResourceList{
		list("networking.k8s.io/v9", r("networkpolicies", "get", "patch"), r("others", "get", "patch")),
		list("networking.k8s.io/v1", r("networkpolicies", "get", "patch")), list("example.com/v1", r("things", "get", "patch")),
	}
	w := NewWatcher(&shuffled{lists: lists}, func(context.Context) (Services, error) { return services, nil }, nil)
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if served, ok := w.Allowlist().Served("networking.k8s.io", "networkpolicies"); !ok || !slices.Equal(served.Versions, []string{"v1"}) {
		t.Errorf("served %+v, %t", served, ok)
	}
	if l := w.Allowlist(); l.Has("networking.k8s.io", "others", "") || !l.Has("example.com", "things", "") {
		t.Error("a definition is served in a built-in group, or not in its own")
	}
}

// TestA2_AGroupThatIsOnlyClaimedToBeBuiltInIsLeftOut: the claim is a label, which users may write. If the label is right, nothing
// is known about the objects that are stored in the group. If it is wrong, definitions serve the group.
func TestA2_AGroupThatIsOnlyClaimedToBeBuiltInIsLeftOut(t *testing.T) {
	service := func(group, version, managed string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": version + "." + group, "labels": map[string]any{AutoManaged: managed}},
			"spec":     map[string]any{"group": group, "version": version},
		}}
	}
	services := servicesOf([]unstructured.Unstructured{
		service("apps", "v1", "onstart"), service("example.com", "v1", "true"), service("example.com", "v99", "onstart"), service("other.example.com", "v1", "true"),
	})
	if len(services.Own) != 1 || services.Own[0] != "apps" || len(services.Claimed) != 1 || services.Claimed["example.com"] != "v99.example.com" {
		t.Errorf("own %q, claimed %q", services.Own, services.Claimed)
	}
	w := NewWatcher(&shuffled{lists: []*metav1.APIResourceList{
		list("apps/v1", r("deployments", "get", "patch")), list("example.com/v1", r("things", "get", "patch")), list("other.example.com/v1", r("things", "get", "patch")),
	}}, func(context.Context) (Services, error) { return services, nil }, nil)
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := w.Allowlist(); l.Has("example.com", "things", "") || !l.Has("apps", "deployments", "") || !l.Has("other.example.com", "things", "") {
		t.Error("a claimed group is in the list, or another is not")
	}
}

// broken answers once and fails after that.
type broken struct{ answered bool }

func (b *broken) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	if b.answered {
		return nil, nil, errors.New("connection refused")
	}
	b.answered = true
	return nil, []*metav1.APIResourceList{list("apps/v1", r("deployments", "get", "patch"))}, nil
}

func TestA2_AnAllowlistThatCannotBeReadAgainRunsOut(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	w := NewWatcher(&broken{}, func(context.Context) (Services, error) { return Services{}, nil }, nil)
	w.clock = clock
	if w.Ready() == nil || w.Allowlist() != nil {
		t.Error("there is a list before anything was read")
	}
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Step(maxAge - time.Millisecond)
	if err := w.Refresh(t.Context()); err == nil {
		t.Fatal("a refresh that failed is no error")
	}
	if !w.Allowlist().Has("apps", "deployments", "") || w.Ready() != nil {
		t.Errorf("it runs out too early: %v", w.Ready())
	}
	clock.Step(time.Millisecond)
	if w.Allowlist().Has("apps", "deployments", "") {
		t.Error("a list that was read once never expires")
	}
	if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "more than 5m0s ago") {
		t.Errorf("%v", err)
	}
}
