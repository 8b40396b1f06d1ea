package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Review is the review that a real API server sent to admission webhooks for a step, without the parts that differ from run to run.
type Review struct {
	Step        string                      `json:"step"`
	Operation   admissionv1.Operation       `json:"operation"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource,omitempty"`
	// RequestResource is recorded only if it differs from Resource.
	RequestResource *metav1.GroupVersionResource `json:"requestResource,omitempty"`
	Namespace       string                       `json:"namespace,omitempty"`
	Name            string                       `json:"name,omitempty"`
	OldObject       json.RawMessage              `json:"oldObject,omitempty"`
	Object          json.RawMessage              `json:"object,omitempty"`
}

// Request returns the admission request of a step: the recorded one, or the one of its pair, with the step's user. It is an error if the
// step has neither.
func (s *Scenario) Request(step *Step) (*admissionv1.AdmissionRequest, error) {
	var r *Review
	if step.Pair != nil {
		r = s.pairReview(step)
	} else if r = s.Reviews[step.Name]; r == nil {
		return nil, fmt.Errorf("scenario %q: step %q is not recorded: run the integration tests with -update", s.Name, step.Name)
	}
	kind, resource, dryRun := r.Kind, r.Resource, step.DryRun
	if r.RequestResource != nil {
		resource = *r.RequestResource
	}
	return &admissionv1.AdmissionRequest{
		UID: types.UID(s.Name), Operation: r.Operation, Namespace: r.Namespace, Name: r.Name,
		Kind: r.Kind, RequestKind: &kind, Resource: r.Resource, RequestResource: &resource,
		SubResource: r.SubResource, RequestSubResource: r.SubResource, DryRun: &dryRun,
		UserInfo:  authenticationv1.UserInfo{Username: step.User, Groups: s.groups(step.User)},
		OldObject: runtime.RawExtension{Raw: r.OldObject}, Object: runtime.RawExtension{Raw: r.Object},
	}, nil
}

// groups are the groups in the user's certificate, and the groups that the API server adds.
func (s *Scenario) groups(user string) []string {
	return append(slices.Clone(s.Users[user].Groups), "system:authenticated")
}

func (s *Scenario) pairReview(step *Step) *Review {
	r := &Review{
		Step: step.Name, Operation: admissionv1.Create, SubResource: step.Subresource, Namespace: s.Namespace(), Name: s.ObjectName(step),
		Kind:     metav1.GroupVersionKind{Group: s.Resource.Group, Version: s.through(step).Version, Kind: s.Kind},
		Resource: metav1.GroupVersionResource(s.through(step).GroupVersionResource),
		Object:   json.RawMessage(step.Pair.New),
	}
	if step.Pair.Old != nil {
		r.Operation, r.OldObject = admissionv1.Update, json.RawMessage(*step.Pair.Old)
	}
	return r
}

// Normalize returns the review of an admission request. Values that a server chooses anew in each run get fixed values: uid,
// resourceVersion and times. If the server changed an entry of managedFields, its times differ between the two objects, even if both were
// written within the same second.
func Normalize(step *Step, req *admissionv1.AdmissionRequest) (*Review, error) {
	r := &Review{
		Step: step.Name, Operation: req.Operation, Kind: req.Kind, Resource: req.Resource, SubResource: req.SubResource,
		Namespace: req.Namespace, Name: req.Name,
	}
	if req.RequestResource != nil && *req.RequestResource != req.Resource {
		r.RequestResource = req.RequestResource
	}
	old, err := decodeObject(req.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	object, err := decodeObject(req.Object.Raw)
	if err != nil {
		return nil, err
	}
	normalizeTimes(step, old, object)
	for _, o := range []map[string]any{old, object} {
		normalizeMetadata(o)
		normalizeTransitions(o["status"])
		sortManagers(o)
	}
	if r.OldObject, err = encodeObject(old); err != nil {
		return nil, err
	}
	r.Object, err = encodeObject(object)
	return r, err
}

const (
	fixedUID     = "00000000-0000-4000-8000-000000000000"
	fixedVersion = "1"
	before       = "2026-01-01T00:00:00Z"
	now          = "2026-01-01T00:00:01Z"
)

func normalizeMetadata(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	for field, fixed := range map[string]string{"uid": fixedUID, "resourceVersion": fixedVersion, "creationTimestamp": before, "deletionTimestamp": before} {
		if v, ok := meta[field]; ok && v != nil && v != "" {
			meta[field] = fixed
		}
	}
}

// normalizeTransitions fixes the times of conditions.
func normalizeTransitions(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			normalizeTransitions(item)
		}
	case map[string]any:
		for name, member := range v {
			if name == "lastTransitionTime" {
				v[name] = before
			} else {
				normalizeTransitions(member)
			}
		}
	}
}

// normalizeTimes gives every entry of old the same time. In object it gives another time to the entries whose time the server set: a new
// entry, and the entry of the user that applied a change or set a value. An entry that only lost fields keeps its time.
func normalizeTimes(step *Step, old, object map[string]any) {
	changed, gave := !reflect.DeepEqual(content(old), content(object)), gives(content(old), content(object))
	operation, manager := "Update", step.Request.FieldManager
	if step.Request.Apply != nil {
		operation = "Apply"
	}
	if manager == "" {
		manager = step.User
	}
	for _, e := range managedEntries(object) {
		if _, timed := e["time"]; !timed {
			continue
		}
		subresource, _ := e["subresource"].(string)
		own := e["manager"] == manager && e["operation"] == operation && subresource == step.Subresource
		is := func(but ...string) bool {
			return slices.ContainsFunc(managedEntries(old), func(was map[string]any) bool { return sameBut(was, e, but...) })
		}
		e["time"] = before
		if !is("time", "fieldsV1") || own && (gave || operation == "Apply" && (changed || !is("time"))) {
			e["time"] = now
		}
	}
	for _, e := range managedEntries(old) {
		if _, timed := e["time"]; timed {
			e["time"] = before
		}
	}
}

// content is an object without the fields that the server writes into every stored object.
func content(object map[string]any) map[string]any {
	out := maps.Clone(object)
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		delete(meta, "managedFields")
		delete(meta, "resourceVersion")
		delete(meta, "generation")
		out["metadata"] = meta
	}
	return out
}

// gives reports whether a value contains a part that another one lacks. The order of lists does not count.
func gives(old, object any) bool {
	switch is := object.(type) {
	case map[string]any:
		was, _ := old.(map[string]any)
		for name, v := range is {
			if before, ok := was[name]; !ok || gives(before, v) {
				return true
			}
		}
		return was == nil
	case []any:
		was, _ := old.([]any)
		for _, item := range is {
			if !slices.ContainsFunc(was, func(before any) bool { return !gives(before, item) }) {
				return true
			}
		}
		return was == nil
	}
	return !reflect.DeepEqual(old, object)
}

func sameBut(a, b map[string]any, fields ...string) bool {
	a, b = maps.Clone(a), maps.Clone(b)
	for _, field := range fields {
		delete(a, field)
		delete(b, field)
	}
	return reflect.DeepEqual(a, b)
}

// sortManagers sorts managedFields by their content. A server sorts them by time.
func sortManagers(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	list, _ := meta["managedFields"].([]any)
	slices.SortStableFunc(list, func(a, b any) int {
		x, _ := a.(map[string]any)
		y, _ := b.(map[string]any)
		for _, field := range []string{"manager", "operation", "subresource", "apiVersion"} {
			s, _ := x[field].(string)
			t, _ := y[field].(string)
			if c := strings.Compare(s, t); c != 0 {
				return c
			}
		}
		return 0
	})
}

func managedEntries(object map[string]any) []map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	list, _ := meta["managedFields"].([]any)
	var out []map[string]any
	for _, item := range list {
		if entry, ok := item.(map[string]any); ok {
			out = append(out, entry)
		}
	}
	return out
}

func decodeObject(raw []byte) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	return object, decoder.Decode(&object)
}

func encodeObject(object map[string]any) (json.RawMessage, error) {
	if object == nil {
		return nil, nil
	}
	return json.Marshal(object)
}

func readReviews(path string) (map[string]*Review, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*Review
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string]*Review{}
	for _, r := range list {
		out[r.Step] = r
	}
	return out, nil
}

// EncodeReviews renders reviews with one line for each and one for each of its objects.
func EncodeReviews(list []*Review) ([]byte, error) {
	out := bytes.NewBufferString("[")
	for i, r := range list {
		head := *r
		head.OldObject, head.Object = nil, nil
		raw, err := json.Marshal(head)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n" + string(raw[:len(raw)-1]))
		if r.OldObject != nil {
			out.WriteString(",\n \"oldObject\": " + string(r.OldObject))
		}
		if r.Object != nil {
			out.WriteString(",\n \"object\": " + string(r.Object))
		}
		out.WriteString("}")
	}
	out.WriteString("\n]\n")
	return out.Bytes(), nil
}

// EncodeReview writes an AdmissionReview around the exact bytes of the objects, even if they are no JSON.
func EncodeReview(req *admissionv1.AdmissionRequest) ([]byte, error) {
	bare := req.DeepCopy()
	bare.Object.Raw, bare.OldObject.Raw = nil, nil
	raw, err := json.Marshal(bare)
	if err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte(`"object":null,`), nil), []byte(`"oldObject":null,`), nil), []byte("}"))
	var b bytes.Buffer
	b.WriteString(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":`)
	b.Write(head)
	if req.Object.Raw != nil {
		b.WriteString(`,"object":`)
		b.Write(req.Object.Raw)
	}
	if req.OldObject.Raw != nil {
		b.WriteString(`,"oldObject":`)
		b.Write(req.OldObject.Raw)
	}
	b.WriteString("}}")
	return b.Bytes(), nil
}
