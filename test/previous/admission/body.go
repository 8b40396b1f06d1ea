package admission

import (
	"bytes"
	"errors"
	"math/bits"
	"mime"
	"net/http"
	"sync"
)

// body is the body of a request in memory that another request can use afterwards. Without that, bodies are most of what the garbage collector
// has to collect.
type body struct {
	bytes []byte
	// size is the index in bodies, and memory is what is kept there.
	size   int
	memory []byte
}

const (
	// smallestBody is how many bytes the smallest memory for bodies has. Each size is twice the one before.
	smallestBody = 4 << 10
	// mostAnnounced is the maximum number of bytes that are allocated from the announced Content-Length, before the bytes arrive: a client can
	// announce more than it sends. Larger bodies are rare, and their memory is not kept.
	mostAnnounced = 1 << 20
)

// bodies have the memory of bodies that have been released, by size. The garbage collector frees what is not used for a while. What is in use is
// bounded by the budget of the server: a body takes at most twice the bytes that were announced.
var bodies [9]sync.Pool

// newBody returns an empty body with room for n bytes and what bytes.Buffer wants for the last read.
func newBody(n int64) *body {
	n = min(max(n, 0), mostAnnounced)
	size := bits.Len64(uint64(max(n, 1)-1) / smallestBody) //nolint:gosec // n is not negative.
	if b, ok := bodies[size].Get().(*body); ok {
		return b
	}
	return &body{size: size, memory: make([]byte, 0, smallestBody<<size+bytes.MinRead)}
}

// release lets another request use the memory. It overwrites the bytes: objects may contain secrets, and what would still refer to them must not
// read those of another request.
func (b *body) release() {
	clear(b.memory[:min(len(b.bytes), cap(b.memory))])
	if cap(b.bytes) != cap(b.memory) {
		clear(b.bytes) // They are elsewhere, because the body was longer than announced.
	}
	b.bytes = nil
	bodies[b.size].Put(b)
}

// read returns the body of a POST of JSON of at most limit bytes.
func read(w http.ResponseWriter, r *http.Request, limit int64) (*body, error) {
	if r.Method != http.MethodPost {
		return nil, refused(http.StatusMethodNotAllowed, "method %q is not allowed: use POST", r.Method)
	}
	if contentType := r.Header.Get("Content-Type"); contentType != "application/json" {
		if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
			return nil, refused(http.StatusUnsupportedMediaType, "content type %q is not supported: use application/json", contentType)
		}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, refused(http.StatusUnsupportedMediaType, "content encoding %q is not supported: send the body as it is", encoding)
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	out := newBody(r.ContentLength)
	body := bytes.NewBuffer(out.memory)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	out.bytes = body.Bytes()
	if err == nil && len(out.bytes) > 0 {
		return out, nil
	}
	out.release()
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case err != nil:
		return nil, badRequest("body cannot be read: %w: send it again", err)
	}
	return nil, badRequest("body is empty: send one JSON document")
}

func tooLarge(limit int64) error {
	return refused(http.StatusRequestEntityTooLarge, "body has more than %d bytes: review smaller objects; fieldperm-webhook takes larger admission reviews with a larger --max-request-bytes", limit)
}
