package server

import (
	"net/http"
	"time"
)

// bodyTimeout bounds the reading of a request: no API server waits longer for the whole answer.
const bodyTimeout = 30 * time.Second

// limit bounds what is answered at the same time: every request holds its objects, and one that waits
// for longer than its caller does is worth nothing.
type limit chan struct{}

func newLimit(requests int) limit { return make(limit, requests) }

// handler refuses what is above the limit before its body is read. API servers take that for a failure.
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
		// Whoever sends slowly must not keep a place. Not every writer has deadlines; those of the server do.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		next.ServeHTTP(w, r)
	})
}
