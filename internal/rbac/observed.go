package rbac

import (
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// silence is how long a watch may be without any event. kube-apiserver sends a bookmark every minute to clients that request them,
// as informers do, so a silent watch hangs: a component in between has lost it. A watch that is not silent may still miss changes;
// see informer.
const silence = 3 * time.Minute

// observed is a watch that reports its opening, its events and its end to its informer. A watch that is silent for too long ends
// like one with an expired resource version, so that a list follows.
type observed struct {
	watch.Interface
	informer *informer
	events   chan watch.Event
	stopped  chan struct{}
	stop     sync.Once

	// Guarded by the informer's mu:

	initial bool // initial events come first; they describe the existing objects
	served  bool // an event other than an error has arrived
	ended   bool

	// since is when the watch opened. before is the informer's lost at that time.
	since  time.Time
	before *time.Time
}

func observe(w watch.Interface, i *informer, initial bool) *observed {
	o := &observed{Interface: w, informer: i, initial: initial, events: make(chan watch.Event), stopped: make(chan struct{})}
	i.saw(o, nil)
	go o.run()
	return o
}

// ResultChan returns the channel of events. The channel is closed after the informer has recorded the end.
func (o *observed) ResultChan() <-chan watch.Event { return o.events }

// Stop ends the watch. It may be called more than once.
func (o *observed) Stop() {
	o.stop.Do(func() {
		o.informer.closed(o)
		close(o.stopped)
		o.Interface.Stop()
	})
}

func (o *observed) run() {
	defer close(o.events)
	defer o.Stop()
	timer := o.informer.clock.NewTimer(silence)
	defer timer.Stop()
	for silent := false; !silent; {
		var event watch.Event
		select {
		case <-o.stopped:
			return
		case next, ok := <-o.Interface.ResultChan():
			if !ok {
				return
			}
			event = next
			timer.Reset(silence)
		case <-timer.C():
			expired := apierrors.NewResourceExpired(fmt.Sprintf("nothing, not even a bookmark, for %s", silence))
			event, silent = watch.Event{Type: watch.Error, Object: &expired.ErrStatus}, true
		}
		o.informer.saw(o, &event)
		select {
		case o.events <- event:
		case <-o.stopped:
			return
		}
	}
}
