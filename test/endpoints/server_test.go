//go:build integration

package endpoints

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/openapi"
	"github.com/fieldperm/fieldperm/test/store"
)

// recorder sends requests to a control plane and reads the stored objects.
type recorder struct {
	ctx       context.Context
	host      string
	client    *http.Client
	log       *store.Log
	objects   objects
	documents map[runtimeschema.GroupVersion]openapi.Document
	names     int
	// requests is the number of sent requests.
	requests int
}

const namespace = "endpoints"

func newRecorder(ctx context.Context, plane *cluster.Cluster, s *store.Store) (*recorder, error) {
	config := plane.Admin()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	log, err := s.Follow(ctx, 0)
	if err != nil {
		return nil, err
	}
	known, err := readObjects()
	if err != nil {
		return nil, err
	}
	r := &recorder{
		ctx: ctx, host: strings.TrimSuffix(config.Host, "/"), client: client, log: log, objects: known,
		documents: map[runtimeschema.GroupVersion]openapi.Document{},
	}
	answer, err := r.send(http.MethodPost, "/api/v1/namespaces", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	})
	if err == nil && !answer.ok() {
		err = fmt.Errorf("namespace: %s", answer.raw)
	}
	return r, err
}

// answer is the answer of the API server to a request.
type answer struct {
	code int
	raw  []byte
	body map[string]any
	// changes are the changes that were stored meanwhile.
	changes []store.Change
}

func (a *answer) ok() bool { return a.code/100 == 2 }

// message is the API server's reason for a refusal, shortened.
func (a *answer) message() string {
	text, _ := a.body["message"].(string)
	if text == "" {
		text = string(a.raw)
	}
	return fmt.Sprintf("%d %.200s", a.code, text)
}

func (r *recorder) send(method, path string, body map[string]any) (*answer, error) {
	if _, err := r.log.Next(r.ctx); err != nil {
		return nil, err
	}
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(r.ctx, method, r.host+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	r.requests++
	out := &answer{code: response.StatusCode}
	if out.raw, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	// An answer that is no JSON, for example the log of a Pod, has no body here.
	_ = utiljson.Unmarshal(out.raw, &out.body)
	if method != http.MethodGet {
		out.changes, err = r.log.Next(r.ctx)
	}
	return out, err
}

// stored returns an object before and after a request, both nil if the request did not change it. If there are several changes, it is the
// one with the revision in the API server's answer.
func (a *answer) stored(key string) (before, after map[string]any, err error) {
	version, _ := nested(a.body, "metadata", "resourceVersion").(string)
	var found *store.Change
	for i := range a.changes {
		c := &a.changes[i]
		if c.Key == key && (found == nil || fmt.Sprint(c.Revision) == version) {
			found = c
		}
	}
	if found == nil || found.After == nil {
		return nil, nil, nil
	}
	if after, err = store.Decode(found.After); err != nil || found.Before == nil {
		return nil, after, err
	}
	before, err = store.Decode(found.Before)
	return before, after, err
}

func nested(v any, path ...string) any {
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// types returns the types that the server publishes for a group and version. They are read once.
func (r *recorder) types(gv runtimeschema.GroupVersion) (openapi.Document, error) {
	if known, ok := r.documents[gv]; ok {
		return known, nil
	}
	answer, err := r.send(http.MethodGet, openapi.Path(gv), nil)
	if err != nil {
		return nil, err
	}
	if !answer.ok() {
		return nil, fmt.Errorf("GET %s: %s", openapi.Path(gv), answer.message())
	}
	out, err := openapi.Parse(answer.raw)
	if err == nil {
		r.documents[gv] = out
	}
	return out, err
}
