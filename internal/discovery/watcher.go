package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

// Server is what an API server says of its resources.
type Server interface {
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

const (
	refreshInterval = 30 * time.Second
	retryInterval   = time.Second
	// attemptTimeout bounds one refresh.
	attemptTimeout = 15 * time.Second
	// settle is how long changes may gather before one refresh answers them all.
	settle = 100 * time.Millisecond
)

// Watcher keeps an allowlist current.
type Watcher struct {
	server     Server
	aggregated func(context.Context) ([]string, error)
	named      []string
	changed    chan struct{}
	current    atomic.Pointer[Allowlist]
}

// NewWatcher returns a Watcher with an empty allowlist. aggregated returns the groups that other
// servers serve; named are those of them to allow all the same.
func NewWatcher(server Server, aggregated func(context.Context) ([]string, error), named []string) *Watcher {
	return &Watcher{server: server, aggregated: aggregated, named: named, changed: make(chan struct{}, 1)}
}

// Allowlist returns the current list, nil before the first.
func (w *Watcher) Allowlist() *Allowlist { return w.current.Load() }

// Ready is nil once there is an allowlist.
func (w *Watcher) Ready() error {
	if w.current.Load() == nil {
		return errors.New("discovery: the API server has not been read yet: see the log for why")
	}
	return nil
}

// Changed asks for a refresh soon. It never blocks.
func (w *Watcher) Changed() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run refreshes the list at once, on Changed and every 30 s, until the context ends. A refresh that
// fails leaves the list as it was.
func (w *Watcher) Run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("discovery")
	for {
		wait := refreshInterval
		if err := w.Refresh(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			log.Error(err, "The allowlist stays as it was", "resources", w.Allowlist().Len())
			wait = retryInterval
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			continue
		case <-w.changed:
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
	}
}

// Refresh reads the API server and replaces the allowlist. Groups whose discovery fails are left out,
// which only takes away.
func (w *Watcher) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, lists, err := w.server.ServerGroupsAndResourcesWithContext(ctx)
	var partial *clientdiscovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partial):
		klog.FromContext(ctx).V(2).Info("Some groups cannot be discovered and are left out", "err", err)
	case err != nil:
		return fmt.Errorf("discovery: %w", err)
	}
	// After discovery, so that no group that it lists can be aggregated unnoticed.
	aggregated, err := w.aggregated(ctx)
	if err != nil {
		return err
	}
	w.current.Store(Build(lists, aggregated, w.named))
	return nil
}
