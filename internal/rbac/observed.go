package rbac

import (
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// silence is for how long a watch may bring nothing at all. kube-apiserver sends a bookmark each minute
// to whoever asks for them, as informers do, and so a silent watch hangs: something between here and
// there has lost it, or it was opened at a version that the API server, restored from a backup, has yet
// to come to.
const silence = 3 * time.Minute

// observed is a watch that tells its informer when it opens and ends and what comes through it. One that
// is silent for too long ends as one whose version has expired: a new watch from the same version might
// be as silent, a list cannot be.
type observed struct {
	watch.Interface
	informer *informer
	events   chan watch.Event
	stopped  chan struct{}
	stop     sync.Once

	// The rest is guarded by the informer's mu.

	initial bool // objects come first that are no news
	served  bool // an event has come that was no error
	ended   bool

	// since is when it opened, and before is since when there had been none.
	since  time.Time
	before *time.Time
}

func observe(w watch.Interface, i *informer, initial bool) *observed {
	o := &observed{Interface: w, informer: i, initial: initial, events: make(chan watch.Event), stopped: make(chan struct{})}
	i.saw(o, nil)
	go o.run()
	return o
}

// ResultChan is closed after the informer knows of the end.
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
