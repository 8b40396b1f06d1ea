//go:build integration

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// auditor looks for values that only forbidden attempts write: in all that is answered to writers, in every state that
// an object went through, and in what is there at the end.
type auditor struct {
	client *rest.RESTClient
	// barriersDown is that nobody enforces barriers, rightly so: fieldperm has been uninstalled.
	barriersDown atomic.Bool

	mu sync.Mutex
	// found has what landed and where it was seen first, with the time.
	found []finding
	seen  map[string]bool
}

type finding struct {
	what string
	at   time.Time
}

// watched are the collections that writers write to.
var watched = []string{"/apis/apps/v1/namespaces/" + namespace + "/deployments", "/api/v1/namespaces/" + namespace + "/configmaps", "/api/v1/namespaces/" + namespace + "/secrets"}

func newAuditor(client *rest.RESTClient) *auditor {
	return &auditor{client: client, seen: map[string]bool{}}
}

// look notes each value of a forbidden attempt in what was answered or read.
func (a *auditor) look(where string, body []byte) {
	for rest := body; ; {
		at := bytes.Index(rest, []byte(mark))
		if at < 0 {
			return
		}
		rest = rest[at+len(mark):]
		a.note(where, mark+string(rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))]))
	}
}

// note notes a value that has landed, once.
func (a *auditor) note(where, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.seen[value] {
		a.seen[value] = true
		a.found = append(a.found, finding{what: fmt.Sprintf("%s: %q", where, value), at: time.Now()})
	}
}

// take returns what was found since the last call.
func (a *auditor) take() []finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.found
	a.found = nil
	return out
}

// follow watches a collection until the context ends. Where the watch breaks it goes on at the version that it had
// reached, so that no state escapes it.
func (a *auditor) follow(ctx context.Context, path string) {
	version := ""
	for ctx.Err() == nil {
		if version == "" {
			version = a.list(ctx, path)
		}
		if version != "" {
			version = a.watch(ctx, path, version)
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// list looks at all that is there and returns its version, "" if it cannot be read.
func (a *auditor) list(ctx context.Context, path string) string {
	raw, err := a.client.Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return ""
	}
	a.look("read in "+path, raw)
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	return list.Metadata.ResourceVersion
}

// watch returns the version that it came to, "" if that is too old to go on at.
func (a *auditor) watch(ctx context.Context, path, version string) string {
	query := url.Values{"watch": {"true"}, "resourceVersion": {version}, "allowWatchBookmarks": {"true"}}
	request := a.client.Get().AbsPath(path)
	for name, values := range query {
		request = request.Param(name, values[0])
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		if strings.Contains(err.Error(), "too old") {
			return ""
		}
		return version
	}
	defer stream.Close()
	decoder := json.NewDecoder(stream)
	for {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := decoder.Decode(&e); err != nil {
			_, _ = io.Copy(io.Discard, stream)
			return version
		}
		if e.Type == "ERROR" {
			return ""
		}
		a.look("watched in "+path, e.Object)
		var object struct {
			Metadata struct{ ResourceVersion string }
		}
		if json.Unmarshal(e.Object, &object) == nil && object.Metadata.ResourceVersion != "" {
			version = object.Metadata.ResourceVersion
		}
	}
}
