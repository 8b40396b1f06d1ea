package admission

import (
	"context"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"
)

// reviewContext is the context of one review. It ends before the API server gives up, and its logger has the fields of the request. Most reviews
// wait for nothing and log nothing. So the timer starts when Done is called first, and the fields are worked out when a line is logged.
type reviewContext struct {
	// Context is that of the HTTP request, with the logger.
	context.Context
	deadline time.Time
	log      reviewLog

	mu sync.Mutex
	// waited is the context of those who wait for the end, nil as long as nobody does.
	waited context.Context
	cancel context.CancelFunc
	ended  bool
}

func newReviewContext(of context.Context, patience time.Duration, endpoint string, req *admissionv1.AdmissionRequest) *reviewContext {
	c := &reviewContext{Context: of, deadline: time.Now().Add(patience)}
	if before, ok := of.Deadline(); ok && before.Before(c.deadline) {
		c.deadline = before
	}
	log := klog.FromContext(of)
	c.log = reviewLog{base: log, endpoint: endpoint, req: req}
	if log.GetSink() != nil {
		c.Context = klog.NewContext(of, log.WithSink(&c.log))
	}
	return c
}

// end ends the context. The caller must call it after the review.
func (c *reviewContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}

// Deadline implements context.Context.
func (c *reviewContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *reviewContext) Done() <-chan struct{} { return c.awaited().Done() }

// AfterFunc lets package context derive contexts without a goroutine for each.
func (c *reviewContext) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.awaited(), f)
}

// awaited returns the same context with a timer.
func (c *reviewContext) awaited() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waited == nil {
		c.waited, c.cancel = context.WithDeadline(c.Context, c.deadline)
		if c.ended {
			c.cancel()
		}
	}
	return c.waited
}

// Err implements context.Context.
func (c *reviewContext) Err() error {
	c.mu.Lock()
	waited, ended := c.waited, c.ended
	c.mu.Unlock()
	switch {
	case waited != nil:
		return waited.Err()
	case ended:
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// reviewLog is the logger of a review. Its lines are those of base with the fields of the review as values.
type reviewLog struct {
	base     klog.Logger
	endpoint string
	// req is nil if the review is not of an admission request.
	req *admissionv1.AdmissionRequest

	once sync.Once
	// inner is base for callers that are one call further away.
	inner klog.LogSink
}

var _ klog.LogSink = (*reviewLog)(nil)

func (l *reviewLog) fields() []any {
	out := []any{"endpoint", l.endpoint}
	if l.req != nil {
		out = append(out, about(l.req)...)
	}
	return out
}

// Init does nothing: base is in use already.
func (l *reviewLog) Init(klog.RuntimeInfo) {}

// Enabled implements klog.LogSink.
func (l *reviewLog) Enabled(level int) bool {
	l.once.Do(func() { l.inner = l.base.WithCallDepth(1).GetSink() })
	return l.inner.Enabled(level)
}

// Info implements klog.LogSink.
func (l *reviewLog) Info(level int, message string, more ...any) {
	l.base.WithValues(l.fields()...).WithCallDepth(1).GetSink().Info(level, message, more...)
}

// Error implements klog.LogSink.
func (l *reviewLog) Error(err error, message string, more ...any) {
	l.base.WithValues(l.fields()...).WithCallDepth(1).GetSink().Error(err, message, more...)
}

// WithValues implements klog.LogSink.
func (l *reviewLog) WithValues(more ...any) klog.LogSink {
	return l.base.WithValues(l.fields()...).WithValues(more...).GetSink()
}

// WithName implements klog.LogSink.
func (l *reviewLog) WithName(name string) klog.LogSink {
	return l.base.WithValues(l.fields()...).WithName(name).GetSink()
}

// WithCallDepth is for loggers that skip calls.
func (l *reviewLog) WithCallDepth(depth int) klog.LogSink {
	return l.base.WithValues(l.fields()...).WithCallDepth(depth).GetSink()
}
