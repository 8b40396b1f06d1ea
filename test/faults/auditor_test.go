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

// auditor looks for values that only forbidden attempts write. It looks in all answers to writers, in every state of an object, and in the
// objects at the end.
type auditor struct {
	client *rest.RESTClient
	// barriersDown says that barriers are not enforced for a good reason: fieldperm has been uninstalled.
	barriersDown atomic.Bool

	mu sync.Mutex
	// found has the forbidden values that were stored, where each was seen first, and the time.
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

// look records each value of a forbidden attempt in an answer or an object.
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

// note records a forbidden value once.
func (a *auditor) note(where, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.seen[value] {
		a.seen[value] = true
		a.found = append(a.found, finding{what: fmt.Sprintf("%s: %q", where, value), at: time.Now()})
	}
}

// take returns the findings since the last call.
func (a *auditor) take() []finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.found
	a.found = nil
	return out
}

// follow watches a collection until the context ends. If the watch breaks, it continues at the last version, so that it sees every state.
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

// list reads all objects and returns the version of the list, "" if it cannot be read.
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

// watch returns the last version that it received, "" if that is too old to continue at.
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
