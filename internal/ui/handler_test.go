package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// documents returns the documents of Kubernetes and of YAML.
func documents(t *testing.T, yaml string) *compile.Documents {
	t.Helper()
	out := schematest.Documents(t)
	if yaml != "" {
		file := filepath.Join(t.TempDir(), "secret-place.yaml")
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		more, errs := load.Files([]string{file})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		out = out.Append(more)
	}
	return &out
}

func handlerOf(d *compile.Documents) Handler {
	return Handler{Documents: func() *compile.Documents { return d }, MaxBytes: DefaultMaxBytes}
}

func get(h http.Handler, method string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, Path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "carol"}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestUI_ServesThePageCompressedAndNot(t *testing.T) {
	h := handlerOf(documents(t, "")).HTTP()
	plain := get(h, http.MethodGet)
	if plain.Code != http.StatusOK || !strings.Contains(plain.Body.String(), `"kind":"Deployment"`) || !strings.HasSuffix(plain.Body.String(), "</html>\n") {
		t.Fatalf("%d: %.200s", plain.Code, plain.Body)
	}
	compressed := get(h, http.MethodGet, "Accept-Encoding", "br, gzip;q=0.8")
	r, err := gzip.NewReader(compressed.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
		t.Errorf("the compressed page differs: %v", err)
	}
	for _, w := range []*httptest.ResponseRecorder{plain, compressed} {
		for name, want := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	if plain.Header().Get("Content-Encoding") != "" || compressed.Header().Get("Content-Encoding") != "gzip" {
		t.Error("Content-Encoding is wrong")
	}
	if plain.Header().Get("Content-Length") != strconv.Itoa(len(text)) {
		t.Errorf("Content-Length is %s of %d", plain.Header().Get("Content-Length"), len(text))
	}
	// Each form has its own tag, and a client with the page is not sent it again.
	tags := []string{plain.Header().Get("ETag"), compressed.Header().Get("ETag")}
	if tags[0] == tags[1] {
		t.Errorf("both forms have the tag %s", tags[0])
	}
	if w := get(h, http.MethodGet, "If-None-Match", `"x", W/`+tags[0]); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("known tag: %d with %d bytes", w.Code, w.Body.Len())
	}
	if w := get(h, http.MethodGet, "If-None-Match", tags[1]); w.Code != http.StatusOK {
		t.Errorf("tag of the other form: %d", w.Code)
	}
	if w := get(h, http.MethodHead); w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("ETag") != tags[0] {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
}

func TestUI_AcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{"": false, "gzip": true, "GZIP": true, "br,gzip": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=1": true, "gzip;x": false, "identity": false, "agzip": false} {
		r := httptest.NewRequest(http.MethodGet, Path, nil)
		r.Header.Set("Accept-Encoding", header)
		if got := accepts(r); got != want {
			t.Errorf("%q: %t", header, got)
		}
	}
}

func TestUI_RefusesWithAReason(t *testing.T) {
	d := documents(t, "")
	small := handlerOf(d)
	small.MaxBytes = 1000
	for name, tt := range map[string]struct {
		handler Handler
		method  string
		code    int
		want    string
	}{
		"no schema yet": {Handler{Documents: func() *compile.Documents { return nil }, MaxBytes: DefaultMaxBytes}, http.MethodGet, http.StatusServiceUnavailable, "is not loaded yet: try again"},
		"zero handler":  {Handler{}, http.MethodGet, http.StatusServiceUnavailable, "is not loaded yet"},
		"POST":          {handlerOf(d), http.MethodPost, http.StatusMethodNotAllowed, `method "POST" is not allowed: use GET`},
		"too long":      {small, http.MethodGet, http.StatusInsufficientStorage, "more than 1000 bytes: run kubectl fieldperm explain --all -o html"},
	} {
		w := get(tt.handler.HTTP(), tt.method)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("ETag") != "" {
			t.Errorf("%s: headers %v", name, w.Header())
		}
	}
	w := httptest.NewRecorder()
	handlerOf(d).HTTP().ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("without a caller: %d", w.Code)
	}
}

// Many requests at once render one page, and a change of the documents makes one more.
func TestUI_RendersOncePerGeneration(t *testing.T) {
	first, second := documents(t, ""), documents(t, "")
	current, rendered := first, 0
	h := Handler{
		Documents: func() *compile.Documents { return current },
		Unknown: func() map[runtimeschema.GroupKind]bool {
			rendered++ // Only one request renders at a time.
			return map[runtimeschema.GroupKind]bool{{Group: "example.com", Kind: "Gadget"}: true}
		},
		MaxBytes: DefaultMaxBytes,
	}
	served := h.HTTP()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if w := get(served, http.MethodGet); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "The page lacks barriers of Gadget.example.com") {
				t.Errorf("%d: %.300s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if rendered != 1 {
		t.Errorf("%d pages were made, want 1", rendered)
	}
	current = second
	get(served, http.MethodGet)
	get(served, http.MethodGet)
	if rendered != 2 {
		t.Errorf("%d pages were made, want 2", rendered)
	}
	// A page that is too long is not made again either.
	h.MaxBytes = 1000
	served = h.HTTP()
	get(served, http.MethodGet)
	get(served, http.MethodGet)
	if rendered != 3 {
		t.Errorf("%d pages were made, want 3", rendered)
	}
}
