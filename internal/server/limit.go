package server

import (
	"net/http"
	"sync"
	"time"
)

// bodyTimeout bounds the time to read a request. An API server waits no longer than this for the whole response.
const bodyTimeout = 30 * time.Second

// limit bounds the requests in progress. Every request holds its objects in memory, and a response that comes after the caller's
// timeout is useless.
type limit chan struct{}

func newLimit(requests int) limit { return make(limit, requests) }

// handler refuses requests above the limit before it reads their body. An API server treats the refusal as a failed call.
func (l limit) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case l <- struct{}{}:
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests are being answered: try again; raise --max-requests-in-flight, or run more replicas", http.StatusServiceUnavailable)
			return
		}
		defer func() { <-l }()
		// A slow sender must not occupy a place.
		reading := newBodyTimer(w)
		defer reading.stop()
		next.ServeHTTP(w, r)
	})
}

// bodyTimer ends the reading of a request's body after bodyTimeout. A deadline that is set ahead would do the same, but with HTTP/2 the goroutine
// that serves the whole connection has to wake up to set it, for each request.
type bodyTimer struct {
	timer *time.Timer

	mu sync.Mutex
	// response is nil after the request, when it must not be used any more.
	response http.ResponseWriter
}

func newBodyTimer(w http.ResponseWriter) *bodyTimer {
	t := &bodyTimer{response: w}
	t.timer = time.AfterFunc(bodyTimeout, t.end)
	return t
}

func (t *bodyTimer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.response != nil {
		// Not every ResponseWriter has deadlines; those of the server do, so the error is ignored.
		_ = http.NewResponseController(t.response).SetReadDeadline(time.Unix(1, 0)) // It has passed.
	}
}

// stop must be called before the handler returns.
func (t *bodyTimer) stop() {
	t.timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.response = nil
}
