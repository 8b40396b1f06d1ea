package observation

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// Recorder counts the verbs of observed updates in memory, until they are written into the status. Make it with NewRecorder. It is safe for
// concurrent use.
type Recorder struct {
	clock clock.PassiveClock
	// watched are replaced as a whole.
	watched atomic.Pointer[[]*watched]
	// authenticated is false if any client can send a review. Then nothing is counted: each count would be what such a client wants it to be.
	authenticated bool
	// refused is called for each update that would have been refused, unless it is nil.
	refused func()
}

// watched is one observation of one generation with what was counted since the last write of its status.
type watched struct {
	uid        types.UID
	generation int64
	subjects   v1alpha1.Subjects
	resources  []v1alpha1.ResourceRule
	warns      bool
	audits     bool

	mu    sync.Mutex
	fresh counts
}

var _ admission.Observer = (*Recorder)(nil)

// NewRecorder returns a Recorder that watches nothing. authenticated says whether only authenticated callers send reviews; if not, nothing
// is counted. refused is called for each update that would have been refused; it may be nil.
func NewRecorder(c clock.PassiveClock, authenticated bool, refused func()) *Recorder {
	r := &Recorder{clock: c, authenticated: authenticated, refused: refused}
	r.watched.Store(&[]*watched{})
	return r
}

// follow replaces the observations. Counts of an observation stay as long as its generation.
func (r *Recorder) follow(objects []*v1alpha1.PermissionObservation) {
	before := *r.watched.Load()
	after := make([]*watched, 0, len(objects))
	for _, o := range objects {
		at := slices.IndexFunc(before, func(w *watched) bool { return w.uid == o.UID && w.generation == o.Generation })
		if at >= 0 {
			after = append(after, before[at])
			continue
		}
		after = append(after, &watched{
			uid: o.UID, generation: o.Generation, subjects: v1alpha1.NewSubjects(o.Spec.Subjects), resources: o.Spec.Resources,
			warns: slices.Contains(o.Spec.Actions, v1alpha1.ObservationWarn), audits: slices.Contains(o.Spec.Actions, v1alpha1.ObservationAudit),
		})
	}
	r.watched.Store(&after)
}

// of returns the counts of an observation, nil if it is not watched in this generation.
func (r *Recorder) of(o *v1alpha1.PermissionObservation) *watched {
	for _, w := range *r.watched.Load() {
		if w.uid == o.UID && w.generation == o.Generation {
			return w
		}
	}
	return nil
}

// Missed records for every observation that updates may have been missed in a period.
func (r *Recorder) Missed(gap v1alpha1.ObservationGap) {
	for _, w := range *r.watched.Load() {
		w.mu.Lock()
		w.fresh.miss(gap)
		w.mu.Unlock()
	}
}

// Refused records that kube-apiserver's question about an update was not read. code is the HTTP status of the answer.
func (r *Recorder) Refused(code int) {
	now, reason := now(r.clock), "fieldperm was too busy"
	if code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable {
		reason = fmt.Sprintf("fieldperm did not read the question about an update (HTTP %d, %s): see its log", code, http.StatusText(code))
	}
	r.Missed(v1alpha1.ObservationGap{From: now, To: now, Reason: reason})
}

// Watch implements admission.Observer.
func (r *Recorder) Watch(req *admissionv1.AdmissionRequest) admission.Watch {
	var out *watch
	ref := admission.RequestedResource(req)
	for _, w := range *r.watched.Load() {
		if !w.subjects.Include(req.UserInfo.Username, req.UserInfo.Groups) || !covers(w.resources, ref) {
			continue
		}
		if out == nil {
			out = &watch{recorder: r, update: update{user: req.UserInfo.Username, group: ref.Group, resource: ref.Resource, namespace: req.Namespace, name: req.Name}}
			if ref.Subresource != "" {
				out.update.resource += "/" + ref.Subresource
			}
		}
		out.by = append(out.by, w)
	}
	if out == nil {
		return nil
	}
	return out
}

// watch is the observation of one update.
type watch struct {
	recorder *Recorder
	update   update
	by       []*watched
}

func (w *watch) Warns() bool {
	return slices.ContainsFunc(w.by, func(o *watched) bool { return o.warns })
}
func (w *watch) Audits() bool {
	return slices.ContainsFunc(w.by, func(o *watched) bool { return o.audits })
}

func (w *watch) Record(seen *admission.Observation) {
	at := w.recorder.clock.Now()
	for _, o := range w.counting() {
		o.mu.Lock()
		if seen.Denied {
			o.fresh.denied++
		} else {
			o.fresh.add(&w.update, seen.Verbs, o.warns && seen.Refused != "", at)
		}
		o.mu.Unlock()
	}
	if seen.Refused != "" && w.recorder.refused != nil {
		w.recorder.refused()
	}
}

func (w *watch) Fail() {
	for _, o := range w.counting() {
		o.mu.Lock()
		o.fresh.failed++
		o.mu.Unlock()
	}
}

// counting returns the observations that count the update.
func (w *watch) counting() []*watched {
	if !w.recorder.authenticated {
		return nil
	}
	return w.by
}

// take returns what was counted since the last call.
func (w *watched) take() counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.fresh
	w.fresh = counts{}
	return out
}

// giveBack adds counts that could not be written.
func (w *watched) giveBack(c *counts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh.addAll(c)
}
