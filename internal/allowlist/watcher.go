package allowlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/internal/refresh"
)

// Server is the discovery client of an API server.
type Server interface {
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

const (
	// attemptTimeout bounds one refresh.
	attemptTimeout = 15 * time.Second

	// maxAge is how long a list is valid if it cannot be read again, from the start of its reading. A group may have moved to
	// another server meanwhile, where fieldperm's admission does not see writes.
	maxAge = 5 * time.Minute
)

func timing() refresh.Timing {
	return refresh.Timing{Interval: 30 * time.Second, Settle: 100 * time.Millisecond, FirstRetry: time.Second, LastRetry: time.Second}
}

// Watcher keeps an allowlist current.
type Watcher struct {
	server   Server
	services func(context.Context) (Services, error)
	named    []string
	loop     *refresh.Loop
	clock    clock.PassiveClock
	current  atomic.Pointer[dated]
	failure  atomic.Pointer[error]
}

// dated is an allowlist with the time when its reading started.
type dated struct {
	list *List
	at   time.Time
}

// NewWatcher returns a Watcher with an empty allowlist. services returns which server serves each group. named are the aggregated
// groups that the allowlist includes all the same.
func NewWatcher(server Server, services func(context.Context) (Services, error), named []string) *Watcher {
	return &Watcher{server: server, services: services, named: named, clock: clock.RealClock{}, loop: refresh.New(timing())}
}

// Allowlist returns the current list. It returns nil before the first one, and when the list has become too old.
func (w *Watcher) Allowlist() *List {
	current := w.current.Load()
	if current == nil || w.clock.Since(current.at) >= maxAge {
		return nil
	}
	return current.list
}

// Ready returns nil while there is an allowlist.
func (w *Watcher) Ready() error {
	if w.Allowlist() != nil {
		return nil
	}
	failure := errors.New("there was no answer yet")
	if last := w.failure.Load(); last != nil {
		failure = *last
	}
	const cure = "see that the API server can be reached, and that rbac.yaml of fieldperm-gen manifests is applied"
	if w.current.Load() != nil {
		return fmt.Errorf("discovery: what the API server serves was last read more than %s ago, so nothing is let through by granular: %s (%w)", maxAge, cure, failure)
	}
	return fmt.Errorf("discovery: the API server has not been read yet: %s (%w)", cure, failure)
}

// Changed requests a refresh soon. It never blocks.
func (w *Watcher) Changed() { w.loop.Changed() }

// Run refreshes the list until the context ends: at once, after Changed, and every 30 s. If a refresh fails, the previous list
// stays until it is too old.
func (w *Watcher) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("discovery"))
	w.loop.Run(ctx, w.Refresh, func(err error) {
		w.failure.Store(&err)
		klog.FromContext(ctx).Error(err, "The allowlist stays as it was, until it is too old", "resources", w.Allowlist().Len(), "maxAge", maxAge)
	})
}

// Refresh reads the API server and replaces the allowlist. It leaves out groups whose discovery fails, which only removes
// resources.
func (w *Watcher) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	started := w.clock.Now()
	groups, lists, err := w.server.ServerGroupsAndResourcesWithContext(ctx)
	var partial *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partial):
		klog.FromContext(ctx).V(2).Info("Some groups cannot be discovered and are left out", "err", err)
	case err != nil:
		return fmt.Errorf("discovery: %w", err)
	}
	// Read the services after discovery, so that no group in it can have been aggregated unnoticed.
	services, err := w.services(ctx)
	if err != nil {
		return err
	}
	lists = slices.DeleteFunc(preferredFirst(groups, lists), func(list *metav1.APIResourceList) bool {
		return list != nil && services.unserved(runtimeschema.FromAPIVersionAndKind(list.GroupVersion, "").GroupVersion())
	})
	w.current.Store(&dated{list: Build(lists, services.aggregatedGroups(), w.named), at: started})
	return nil
}

// preferredFirst returns the lists in the order of the groups' versions. Aggregated discovery returns them in any order.
func preferredFirst(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) []*metav1.APIResourceList {
	order := map[string]int{}
	for _, group := range groups {
		for _, version := range group.Versions {
			order[version.GroupVersion] = len(order) + 1
		}
	}
	at := func(list *metav1.APIResourceList) int {
		if list == nil || order[list.GroupVersion] == 0 {
			return len(order) + 1
		}
		return order[list.GroupVersion]
	}
	out := slices.Clone(lists)
	slices.SortStableFunc(out, func(a, b *metav1.APIResourceList) int { return cmp.Compare(at(a), at(b)) })
	return out
}
