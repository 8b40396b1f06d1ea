package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"weak"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/schema/compile"
)

// Path is the path of the page.
const Path = "/ui"

const (
	// DefaultMaxBytes is 50 times the page of all kinds of Kubernetes. A browser opens it in some seconds.
	DefaultMaxBytes = 8 << 20
	// patience bounds the time of one request. It is that of the review API.
	patience = 10 * time.Second
	// retryAfterSeconds is for a client that comes before the schema does.
	retryAfterSeconds = 5
)

// Handler serves the page. The zero Handler has no page.
type Handler struct {
	// Documents returns the documents of the schema in force, nil if there is none yet. The same documents have the same address.
	Documents func() *compile.Documents
	// Unknown returns the kinds with unknown barriers; nil for none.
	Unknown func() map[runtimeschema.GroupKind]bool
	// MaxBytes bounds the page before it is compressed; 0 refuses every page.
	MaxBytes int
}

// kept is the page of one generation, or why it has none. It does not keep the documents in memory.
type kept struct {
	of   weak.Pointer[compile.Documents]
	page *rendered
	err  error
}

// errTooLong means that a page is longer than MaxBytes.
var errTooLong = errors.New("is too long")

// HTTP returns the handler of GET /ui. It serves authenticated callers only, as GET /permissions does.
func (h Handler) HTTP() http.Handler {
	var last kept
	// One request renders at a time. The others wait for it, and then have its page.
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		log := klog.FromContext(r.Context()).WithValues("endpoint", "ui")
		if caller, ok := request.UserFrom(r.Context()); !ok || caller == nil || caller.GetName() == "" {
			http.Error(w, "caller is not authenticated: present a client certificate or a bearer token", http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", http.MethodGet+", "+http.MethodHead)
			http.Error(w, fmt.Sprintf("method %q is not allowed: use GET", r.Method), http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			unavailable(w, "page: it takes long to make: try again")
			return
		}
		p, err := func() (*rendered, error) {
			defer func() { <-turn }()
			return h.page(&last)
		}()
		switch {
		case errors.Is(err, errNoSchema):
			unavailable(w, err.Error())
		case errors.Is(err, errTooLong):
			http.Error(w, err.Error(), http.StatusInsufficientStorage)
		case err != nil:
			log.Error(err, "No page")
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			p.serve(log, w, r)
		}
	})
}

var errNoSchema = errors.New("permission schema: is not loaded yet: try again, and look at /readyz if it stays so")

// page returns the page of the documents in force. The caller must have its turn.
func (h Handler) page(last *kept) (*rendered, error) {
	var documents *compile.Documents
	if h.Documents != nil {
		documents = h.Documents()
	}
	if documents == nil {
		return nil, errNoSchema
	}
	if of := weak.Make(documents); of != last.of {
		var unknown map[runtimeschema.GroupKind]bool
		if h.Unknown != nil {
			unknown = h.Unknown()
		}
		// The old page is dropped first, so that there are never two.
		*last = kept{}
		page, err := render(documents, unknown, h.MaxBytes)
		// A page that cannot be made is not tried again for each request.
		*last = kept{of, page, err}
	}
	return last.page, last.err
}

func unavailable(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	http.Error(w, why, http.StatusServiceUnavailable)
}

// protect sets the headers of every answer. The page itself has a policy for its scripts.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", "frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "private, no-cache")
}

// accepts reports whether a client takes content that is compressed by gzip.
func accepts(r *http.Request) bool {
	for _, list := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(list, ",") {
			coding, parameters, _ := strings.Cut(one, ";")
			if coding = strings.TrimSpace(coding); !strings.EqualFold(coding, "gzip") && !strings.EqualFold(coding, "x-gzip") {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(parameters, " ", ""), "q="), 64)
			return err != nil && parameters == "" || err == nil && q > 0
		}
	}
	return false
}
