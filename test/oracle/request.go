package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Method is the way in which a write is sent.
type Method string

// The methods that an API server has for writes.
const (
	Create         Method = "create"
	Update         Method = "update"
	JSONPatch      Method = "json patch"
	MergePatch     Method = "merge patch"
	StrategicPatch Method = "strategic patch"
	Apply          Method = "apply"
	ForcedApply    Method = "forced apply"
)

var contentTypes = map[Method]string{
	Create: "application/json", Update: "application/json", JSONPatch: "application/json-patch+json", MergePatch: "application/merge-patch+json",
	StrategicPatch: "application/strategic-merge-patch+json", Apply: "application/apply-patch+yaml", ForcedApply: "application/apply-patch+yaml",
}

// Request is one write.
type Request struct {
	User     *User
	Endpoint *Endpoint
	Method   Method
	// Namespace and Name are the address of the object. Name is empty for a POST to a collection.
	Namespace, Name string
	Manager         string
	DryRun          bool
	// TwoStep says that another applier acts after it.
	TwoStep bool
	Body    []byte
	// creates says that the API server handled the request as a CREATE. It is set when the answer is known.
	creates bool
	// Edits describe how the body was drawn.
	Edits []string
	// Earlier are the earlier writes of the same user in a sequence.
	Earlier []*Request
}

// Create reports whether the API server handles the request as a CREATE in every state of the object.
func (r *Request) Create() bool { return r.Method == Create }

// Path is the URL path of the request, with its query.
func (r *Request) Path() string {
	query := url.Values{}
	if r.Manager != "" {
		query.Set("fieldManager", r.Manager)
	}
	if r.Method == ForcedApply {
		query.Set("force", "true")
	}
	if r.DryRun {
		query.Set("dryRun", "All")
	}
	path := r.Endpoint.Path(r.Namespace, r.Name)
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// version is the version in which the request addresses the object. Entries of managedFields have this version, which differs from the
// version of a Scale.
func (r *Request) version() string {
	return runtimeschema.GroupVersion{Group: r.Endpoint.Group, Version: r.Endpoint.Version}.String()
}

func (r *Request) verb() string {
	switch r.Method {
	case Create:
		return http.MethodPost
	case Update:
		return http.MethodPut
	default:
		return http.MethodPatch
	}
}

func (r *Request) String() string {
	out := ""
	for _, one := range r.Earlier {
		out += one.String() + "\n  then   "
	}
	return out + fmt.Sprintf("%s %s as %s (%s), %s, %s\n%s", r.verb(), r.Path(), r.User.Name, r.User.Sort, contentTypes[r.Method], strings.Join(r.Edits, ", "), r.Body)
}

// Answer is the response of the API server.
type Answer struct {
	Code   int
	Status struct {
		Message string `json:"message"`
		Reason  string `json:"reason"`
	}
	Body []byte
}

// OK reports whether the API server did the request.
func (a *Answer) OK() bool { return a.Code >= 200 && a.Code < 300 }

// Refused reports whether fieldperm or authorization refused the request.
func (a *Answer) Refused() bool { return a.Code == http.StatusForbidden }

// revision is the revision of the stored object, "" if the answer has none.
func (a *Answer) revision() string {
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if !a.OK() || json.Unmarshal(a.Body, &o) != nil {
		return ""
	}
	return o.Metadata.ResourceVersion
}

// sender sends requests on behalf of users, as an administrator with permission to impersonate them.
type sender struct {
	host   string
	client *http.Client
}

func (s *sender) send(ctx context.Context, r *Request) (*Answer, error) {
	headers := http.Header{"Content-Type": {contentTypes[r.Method]}, "Impersonate-User": {r.User.Name}, "Impersonate-Group": {"system:authenticated"}}
	return s.do(ctx, r.verb(), r.Path(), headers, r.Body)
}

// admin sends as a member of system:masters.
func (s *sender) admin(ctx context.Context, verb, path, contentType string, body []byte) (*Answer, error) {
	return s.do(ctx, verb, path, http.Header{"Content-Type": {contentType}}, body)
}

func (s *sender) do(ctx context.Context, verb, path string, headers http.Header, body []byte) (*Answer, error) {
	request, err := http.NewRequestWithContext(ctx, verb, s.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = headers
	request.Header.Set("Accept", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // It was read to its end, or reading failed.
	answer := &Answer{Code: response.StatusCode}
	if answer.Body, err = io.ReadAll(io.LimitReader(response.Body, 16<<20)); err != nil {
		return nil, err
	}
	if !answer.OK() {
		_ = json.Unmarshal(answer.Body, &answer.Status) // A plain text has no status.
		if answer.Status.Message == "" {
			answer.Status.Message = string(answer.Body[:min(len(answer.Body), 300)])
		}
	}
	return answer, nil
}

// parseObject reads an object and keeps whole numbers whole.
func parseObject(raw []byte) (map[string]any, error) {
	var out map[string]any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fmt.Errorf("it is null")
	}
	return out, nil
}

// metadata returns the metadata of an object, and creates it if it is missing.
func metadata(object map[string]any) map[string]any { return child(object, "metadata") }

func child(object map[string]any, name string) map[string]any {
	inner, ok := object[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		object[name] = inner
	}
	return inner
}
