package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Wire sends steps to an API server as one user.
type Wire struct {
	host   string
	client *http.Client
}

// NewWire returns the wire of a user.
func NewWire(config *rest.Config) (*Wire, error) {
	client, err := rest.HTTPClientFor(config)
	return &Wire{host: strings.TrimSuffix(config.Host, "/"), client: client}, err
}

// Answer is the answer of an API server.
type Answer struct {
	Code int
	// AuditID is the ID of the request's audit events.
	AuditID string
	Body    []byte
	// Status is set if the code is an error.
	Status metav1.Status
}

// Do sends a body, nil for none.
func (w *Wire) Do(ctx context.Context, method, path string, query url.Values, contentType string, body any) (*Answer, error) {
	var reader io.Reader
	if body != nil {
		raw, ok := body.([]byte)
		if !ok {
			var err error
			if raw, err = json.Marshal(body); err != nil {
				return nil, err
			}
		}
		reader = bytes.NewReader(raw)
	}
	target := w.host + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // Only read from.
	answer := &Answer{Code: response.StatusCode, AuditID: response.Header.Get("Audit-Id")}
	if answer.Body, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	if answer.Code >= http.StatusBadRequest && json.Unmarshal(answer.Body, &answer.Status) != nil {
		// An error of an authorizer arrives as plain text.
		answer.Status.Message = string(answer.Body)
	}
	return answer, nil
}

// Path is the URL path of the resource's collection, or of an object or subresource if it is named.
func (r Resource) Path(namespace string, names ...string) string {
	path := "/api/" + r.Version
	if r.Group != "" {
		path = "/apis/" + r.Group + "/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Resource
	for _, name := range names {
		if name != "" {
			path += "/" + url.PathEscape(name)
		}
	}
	return path
}

// Send sends the request of a step. live reads the current object as a user that may read it.
func (s *Scenario) Send(ctx context.Context, w *Wire, step *Step, dryRun bool, live func(path string) (map[string]any, error)) (*Answer, error) {
	r := &step.Request
	query := url.Values{"fieldManager": {step.User}}
	if r.FieldManager != "" {
		query.Set("fieldManager", r.FieldManager)
	}
	if dryRun {
		query.Set("dryRun", metav1.DryRunAll)
	}
	if r.Force {
		query.Set("force", "true")
	}
	resource := s.through(step)
	path := resource.Path(s.Namespace(), s.ObjectName(step), step.Subresource)
	switch {
	case r.Merge != nil:
		return w.Do(ctx, http.MethodPatch, path, query, "application/merge-patch+json", r.Merge)
	case r.JSON != nil:
		return w.Do(ctx, http.MethodPatch, path, query, "application/json-patch+json", r.JSON)
	case r.Strategic != nil:
		return w.Do(ctx, http.MethodPatch, path, query, "application/strategic-merge-patch+json", r.Strategic)
	case r.Apply != nil:
		return w.Do(ctx, http.MethodPatch, path, query, "application/apply-patch+yaml", s.complete(resource, r.Apply, s.ObjectName(step)))
	case r.Put != nil:
		source := path
		if step.Subresource != "scale" {
			// All other subresources return the object itself, and some of them (finalize) cannot be read.
			source = resource.Path(s.Namespace(), s.ObjectName(step))
		}
		object, err := live(source)
		if err != nil {
			return nil, err
		}
		return w.Do(ctx, http.MethodPut, path, query, "application/json", mergePatch(object, r.Put))
	case r.Create != nil:
		return w.Do(ctx, http.MethodPost, resource.Path(s.Namespace()), query, "application/json", s.complete(resource, r.Create, ""))
	default:
		query.Del("fieldManager")
		return w.Do(ctx, http.MethodDelete, path, query, "", nil)
	}
}

// complete adds apiVersion, kind, name and namespace.
func (s *Scenario) complete(resource Resource, object map[string]any, name string) map[string]any {
	out := maps.Clone(object)
	out["apiVersion"], out["kind"] = resource.GroupVersion().String(), s.Kind
	meta := map[string]any{}
	if given, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(given)
	}
	if name != "" {
		meta["name"] = name
	}
	if s.Namespace() != "" {
		meta["namespace"] = s.Namespace()
	}
	out["metadata"] = meta
	return out
}
