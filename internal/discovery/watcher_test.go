package discovery

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type shuffled struct {
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
}

func (s *shuffled) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return s.groups, s.lists, nil
}

// client-go returns the lists of aggregated discovery in any order.
func TestA5_CanariesGoToTheVersionThatTheServerPrefers(t *testing.T) {
	version := func(name string) metav1.GroupVersionForDiscovery {
		return metav1.GroupVersionForDiscovery{GroupVersion: "autoscaling/" + name, Version: name}
	}
	old, preferred, other := list("autoscaling/v1", r("hpas", "get", "patch")), list("autoscaling/v2", r("hpas", "get", "patch")), list("new.example.com/v1", r("things", "get", "patch"))
	for _, lists := range [][]*metav1.APIResourceList{{old, preferred, other}, {preferred, old}, {nil, other, old, preferred}} {
		server := &shuffled{groups: []*metav1.APIGroup{{Name: "autoscaling", Versions: []metav1.GroupVersionForDiscovery{version("v2"), version("v1")}}}, lists: lists}
		w := NewWatcher(server, func(context.Context) ([]string, error) { return nil, nil }, nil)
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
