package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/fieldperm/fieldperm/test/fakeapi"
)

const thingsPath = "/apis/example.com/v1/things"

// history is an API server with one resource. Its state can be replaced without an event, as by a restore of etcd.
type history struct {
	*fakeapi.Server
	streams bool // it supports watches that send the initial state

	mu       sync.Mutex
	names    []string
	version  int
	ended    chan struct{} // closed when all open watches end
	watches  int           // open watches
	lists    int           // lists, and watches that are lists
	listed   bool          // the last request was a list
	resumed  []string      // watches that no list preceded
	refusing bool
}

func newHistory(t *testing.T, streams bool, names ...string) *history {
	t.Helper()
	h := &history{streams: streams, names: names, version: 10, ended: make(chan struct{})}
	h.Server = fakeapi.Plain(t, http.HandlerFunc(h.serve))
	return h
}

func thing(name string, version int) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": name, "uid": name, "resourceVersion": strconv.Itoa(version)}}
}

func (h *history) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	encode := func(content any) { _ = json.NewEncoder(w).Encode(content) }
	query := r.URL.Query()
	watches, initial := query.Get("watch") != "", query.Get("sendInitialEvents") != ""
	switch {
	case r.URL.Path != thingsPath:
		http.NotFound(w, r)
		return
	case h.refusing:
		h.refusing = false
		w.Header().Set("Retry-After", "1") // The client waits and sends the same request again.
		fakeapi.Fail(w, apierrors.NewTooManyRequests("busy", 0))
		return
	case initial && !h.streams:
		fakeapi.Fail(w, apierrors.NewBadRequest("sendInitialEvents is forbidden"))
		return
	case !watches:
		h.lists++
		h.listed = true
		var items []any
		for _, name := range h.names {
			items = append(items, thing(name, h.version))
		}
		encode(map[string]any{"apiVersion": "example.com/v1", "kind": "ThingList", "metadata": map[string]any{"resourceVersion": strconv.Itoa(h.version)}, "items": items})
		return
	case initial:
		h.lists++
		for _, name := range h.names {
			encode(map[string]any{"type": "ADDED", "object": thing(name, h.version)})
		}
		end := thing("", h.version)
		end["metadata"].(map[string]any)["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		encode(map[string]any{"type": "BOOKMARK", "object": end})
	case !h.listed:
		h.resumed = append(h.resumed, r.URL.RawQuery)
	}
	h.listed = false
	w.(http.Flusher).Flush()
	ended := h.ended
	h.watches++
	h.mu.Unlock()
	select {
	case <-ended:
	case <-r.Context().Done():
	}
	h.mu.Lock()
	h.watches--
}

// replace puts another state in place, as a restore and later writes do, and ends the open watches.
func (h *history) replace(names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names, h.version = names, h.version+1000
	close(h.ended)
	h.ended = make(chan struct{})
}

// follow runs an informer with a client of fieldperm-webhook until the test ends. It returns a function for the names that it knows.
func (h *history) follow(t *testing.T) func() []string {
	t.Helper()
	objects, err := dynamic.NewForConfig(client(h.Config(), "test"))
	if err != nil {
		t.Fatal(err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(objects, runtimeschema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}, "", 0, cache.Indexers{}, nil).Informer()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return func() []string {
		names := informer.GetStore().ListKeys()
		slices.Sort(names)
		return names
	}
}

func (h *history) await(t *testing.T, known func() []string, want ...string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.resumed) > 0 {
			return false, fmt.Errorf("watches without a list before them: %q", h.resumed)
		}
		return h.watches > 0 && slices.Equal(known(), want), nil
	})
	if err != nil {
		t.Fatalf("the informer knows %q, want %q: %v", known(), want, err)
	}
}

func TestRelist_InformerForgetsWhatARestoreRemoved(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"lists": false, "streams": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, streams, "kept", "made-after-the-backup")
			known := h.follow(t)
			h.await(t, known, "kept", "made-after-the-backup")
			h.replace("deleted-after-the-backup", "kept")
			h.await(t, known, "deleted-after-the-backup", "kept")
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.lists != 2 {
				t.Errorf("%d lists, want one for each watch", h.lists)
			}
		})
	}
}

// TestRelist_AFailedWatchIsNotTriedAgain: between the attempts etcd may be restored.
func TestRelist_AFailedWatchIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	h := newHistory(t, false, "a")
	objects, err := dynamic.NewForConfig(client(h.Config(), "test"))
	if err != nil {
		t.Fatal(err)
	}
	things := objects.Resource(runtimeschema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"})
	if _, err := things.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.refusing = true
	h.mu.Unlock()
	if _, err := things.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "10"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v, want the version to have expired when the watch is tried again", err)
	}
}

// transport answers each request with its code, and counts them. Code 0 is a connection that fails.
type transport struct{ code, requests int }

func (f *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	f.requests++
	if f.code == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: f.code, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func TestRelist_WatchesThatPass(t *testing.T) {
	t.Parallel()
	const list, watch = "GET /things?resourceVersion=0", "GET /things?watch=true&resourceVersion=5"
	for name, c := range map[string]struct {
		before []string // requests, each with the code of its answer
		last   string
		passes bool
	}{
		"first":                        {last: watch},
		"after a list":                 {[]string{"200 " + list}, watch, true},
		"after a list and a watch":     {[]string{"200 " + list, "200 " + watch}, watch, false},
		"after a watch that failed":    {[]string{"200 " + list, "429 " + watch}, watch, false},
		"after a refused connection":   {[]string{"200 " + list, "0 " + watch}, watch, false},
		"after a list that failed":     {[]string{"500 " + list}, watch, false},
		"after a list that broke":      {[]string{"0 " + list}, watch, false},
		"after a list again":           {[]string{"200 " + list, "200 " + watch, "200 " + list}, watch, true},
		"after a list, then none":      {[]string{"200 " + list, "500 " + list}, watch, false},
		"after a list without version": {[]string{"200 GET /things"}, watch, false},
		"after a list of other things": {[]string{"200 GET /others?resourceVersion=0"}, watch, false},
		"after a list of some":         {[]string{"200 " + list + "&fieldSelector=metadata.name%3Da"}, watch, false},
		"after a list by label":        {[]string{"200 " + list + "&labelSelector=a"}, watch, false},
		"of some, after a list":        {[]string{"200 " + list + "&labelSelector=a"}, watch + "&labelSelector=a", true},
		"with initial events":          {last: watch + "&sendInitialEvents=true", passes: true},
		"without initial events":       {last: watch + "&sendInitialEvents=false"},
		"after initial events":         {[]string{"200 " + watch + "&sendInitialEvents=true"}, watch, false},
		"after both":                   {[]string{"200 " + list, "200 " + watch + "&sendInitialEvents=true"}, watch, false},
		"as a number":                  {last: "GET /things?watch=1&resourceVersion=5"},
		"without a version":            {last: "GET /things?watch=true", passes: true},
		"no watch":                     {last: "GET /things?watch=false&resourceVersion=5", passes: true},
		"one object":                   {last: "GET /things/a", passes: true},
		"write":                        {last: "POST /things?watch=true", passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			below := &transport{}
			above := newRelist(below)
			send := func(request string, code int) (*http.Response, error) {
				method, url, _ := strings.Cut(request, " ")
				r, err := http.NewRequestWithContext(t.Context(), method, "https://example.com"+url, nil)
				if err != nil {
					t.Fatal(err)
				}
				below.code = code
				return above.RoundTrip(r)
			}
			for _, request := range c.before {
				code, request, _ := strings.Cut(request, " ")
				number, err := strconv.Atoi(code)
				if err != nil {
					t.Fatal(err)
				}
				if response, err := send(request, number); err == nil {
					_ = response.Body.Close()
				}
			}
			sent := below.requests
			response, err := send(c.last, http.StatusOK)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if passed := below.requests > sent; passed != c.passes {
				t.Errorf("passed: %t, want %t", passed, c.passes)
			}
			if c.passes {
				return
			}
			var status metav1.Status
			if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
				t.Fatal(err)
			}
			if err := apierrors.FromObject(&status); response.StatusCode != http.StatusGone || !apierrors.IsResourceExpired(err) {
				t.Errorf("got %d %v, want that the version has expired", response.StatusCode, err)
			}
		})
	}
}
