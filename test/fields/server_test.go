//go:build integration

package fields

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
)

// markerGroup holds the marker on everything. For each verb there is a group with its name that holds it.
const markerGroup = "fields:marker"

// server sends writes as an administrator or, by impersonation, as a user with some verbs.
type server struct {
	host   string
	client *http.Client
}

func newServer(config *rest.Config) (*server, error) {
	client, err := rest.HTTPClientFor(config)
	return &server{strings.TrimSuffix(config.Host, "/"), client}, err
}

// endpoint is a resource or subresource in one version.
type endpoint struct {
	gvr         runtimeschema.GroupVersionResource
	kind        runtimeschema.GroupVersionKind
	subresource string
	namespaced  bool
	creatable   bool
	updatable   bool
}

func (e *endpoint) String() string {
	name := e.gvr.Resource
	if e.gvr.Group != "" {
		name += "." + e.gvr.Group
	}
	if e.subresource != "" {
		name += "/" + e.subresource
	}
	return name + " " + e.gvr.Version
}

// namespace is the namespace of all objects of the run.
const namespace = "fields"

func (e *endpoint) path(names ...string) string {
	out := "/api/" + e.gvr.Version
	if e.gvr.Group != "" {
		out = "/apis/" + e.gvr.Group + "/" + e.gvr.Version
	}
	if e.namespaced {
		out += "/namespaces/" + namespace
	}
	return strings.Join(append([]string{out, e.gvr.Resource}, names...), "/")
}

// answer is the answer of an API server.
type answer struct {
	code   int
	object map[string]any
	status metav1.Status
}

func (a *answer) ok() bool { return a.code < 300 }

// says is the message without the parts that differ from run to run.
func (a *answer) says() string {
	if a.ok() {
		return "ok"
	}
	return fmt.Sprintf("%d %s", a.code, strings.TrimSpace(a.status.Message))
}

// send sends a request; as are the verbs of its sender in addition to the marker, nil for an administrator.
func (s *server) send(ctx context.Context, method, path string, body map[string]any, as []string) (*answer, error) {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.host+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if as != nil {
		request.Header.Set("Impersonate-User", "fields")
		for _, group := range append([]string{markerGroup}, as...) {
			request.Header.Add("Impersonate-Group", group)
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	out := &answer{code: response.StatusCode}
	if out.ok() {
		return out, utiljson.Unmarshal(raw, &out.object)
	}
	if json.Unmarshal(raw, &out.status) != nil {
		out.status.Message = string(raw)
	}
	return out, nil
}

// write is send with repetitions if the API server asks for them. After a conflict it uses the newest resourceVersion.
func (s *server) write(ctx context.Context, method, path string, body map[string]any, as []string) (*answer, error) {
	for range 5 {
		a, err := s.send(ctx, method, path, body, as)
		if err != nil || a.code != http.StatusTooManyRequests && a.code < 500 {
			return a, err
		}
		if a.code >= 500 && !strings.Contains(a.status.Message, "try again") && a.code != http.StatusServiceUnavailable {
			return a, nil
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // As a client does that is asked to come again.
	}
	return nil, errors.New("the API server goes on being busy: " + path)
}

// raw reads a document that is no API object.
func (s *server) raw(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.host+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return io.ReadAll(response.Body)
}
