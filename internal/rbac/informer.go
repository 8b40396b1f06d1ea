package rbac

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// grace is how long an informer may be without a watch. An API server that restarts is back within this time. With a longer
	// time, grants that were removed long ago would still count.
	grace = 30 * time.Second

	// brief is the lifetime below which a watch without an event does not count as open. Otherwise watches that end at once would
	// reset the time without a watch again and again.
	brief = time.Second

	cure = "see that the API server can be reached, and that fieldperm may list and watch roles, clusterroles, rolebindings and clusterrolebindings (rbac.yaml of fieldperm-gen manifests grants it)"
)

// informer follows one resource and knows since when it has had no watch. A list alone does not count: if an informer can list but
// not watch, its state is as old as client-go waits between two lists.
//
// The informer knows whether a watch is open, but not whether the watch delivers every event. Two bounds apply to a watch that hangs:
// HTTP/2 pings of client-go end a dead connection after 45 s, and a watch without any event for the time silence is replaced by a
// list (see observed). The grace follows, so a decision uses what the API server sent or would have sent at most 3½ minutes ago.
//
// The bounds are about the connection. They say nothing about a watch that resumes at a resource version of another history, as
// after a restore of etcd: such a watch delivers events and bookmarks, but misses changes forever. The client must therefore never
// resume a watch that has ended; that of internal/server does not. Nor can the informer tell an API server that has lost etcd from
// one without changes; such an API server decides by the same old state itself.
type informer struct {
	resource string
	shared   cache.SharedIndexInformer
	clock    clock.WithTicker

	// lost is the time when the last watch ended. It is nil while a watch is open, and zero before the first watch.
	lost atomic.Pointer[time.Time]

	mu      sync.Mutex
	open    *observed
	failure error // the last error of list or watch, nil once a watch is open
}

// resourceClient is a typed client of one resource.
type resourceClient[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

func newInformer[L runtime.Object](client kubernetes.Interface, resource string, api resourceClient[L], kind runtime.Object, indexers cache.Indexers, clock clock.WithTicker) (*informer, error) {
	i := &informer{resource: resource, clock: clock}
	i.lost.Store(&time.Time{})
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := api.List(ctx, options)
			if err != nil {
				i.failed(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := api.Watch(ctx, options)
			if err != nil {
				i.failed(err)
				return nil, err
			}
			return observe(w, i, options.SendInitialEvents != nil && *options.SendInitialEvents), nil
		},
	}
	i.shared = cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), kind, cache.SharedIndexInformerOptions{
		Indexers: indexers, ObjectDescription: i.String(),
	})
	if err := i.shared.SetTransform((&stripper{}).strip); err != nil {
		return nil, fmt.Errorf("RBAC: %s: %w", i, err)
	}
	return i, nil
}

// String returns the resource with its group.
func (i *informer) String() string { return i.resource + "." + rbacv1.GroupName }

// current returns nil if the state is recent enough to decide by.
func (i *informer) current() error {
	lost, synced := i.lost.Load(), i.shared.HasSynced()
	if synced && (lost == nil || i.clock.Since(*lost) <= grace) {
		return nil
	}
	text := "have not been read yet"
	if synced && lost != nil && !lost.IsZero() {
		text = fmt.Sprintf("have not been watched for %s", i.clock.Since(*lost).Round(time.Second))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure != nil {
		return fmt.Errorf("RBAC: %s %s: %w: %s", i, text, i.failure, cure)
	}
	return fmt.Errorf("RBAC: %s %s: %s", i, text, cure)
}

// failed records the error of a list or a watch.
func (i *informer) failed(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failure = err
}

// saw records an event. A nil event means that the watch opened.
func (i *informer) saw(w *observed, event *watch.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case w.ended:
	case event == nil:
		// The state is not complete until all initial events have arrived.
		if !w.initial {
			i.opened(w)
		}
	case event.Type == watch.Error:
		i.failure = fmt.Errorf("watch: %w", apierrors.FromObject(event.Object))
	default:
		w.served = true
		if w.initial && !endsInitial(event) {
			return
		}
		w.initial = false
		if i.open != w {
			i.opened(w)
		}
	}
}

func (i *informer) opened(w *observed) {
	w.before, w.since = i.lost.Load(), i.clock.Now()
	i.open, i.failure = w, nil
	i.lost.Store(nil)
}

// closed records the end of a watch, once. It returns before the reflector sees the end, and so before the next watch opens.
func (i *informer) closed(w *observed) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w.ended = true
	if i.open != w {
		return
	}
	i.open = nil
	now := i.clock.Now()
	if w.served || w.before == nil || w.before.IsZero() || now.Sub(w.since) >= brief {
		i.lost.Store(&now)
		return
	}
	i.lost.Store(w.before)
	if i.failure == nil {
		i.failure = errors.New("watch: ends as soon as it is open")
	}
}

// endsInitial reports whether the event marks the end of the initial events.
func endsInitial(event *watch.Event) bool {
	if event.Type != watch.Bookmark {
		return false
	}
	m, err := meta.Accessor(event.Object)
	return err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
