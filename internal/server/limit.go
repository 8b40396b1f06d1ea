package server

import (
	"net/http"
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
		// A slow sender must not occupy a place. Not every ResponseWriter has deadlines; those of the server do, so the error is
		// ignored.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		next.ServeHTTP(w, r)
	})
}
