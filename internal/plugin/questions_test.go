//go:build integration

package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/verbs"
)

// question is a request with the source of its objects.
type question struct {
	*admissionv1.AdmissionRequest
	sort string
}

func (q question) about() string {
	return fmt.Sprintf("%s %s %s %s by %s", q.sort, q.Operation, q.Kind, q.SubResource, q.UserInfo.Username)
}

func (q question) body(t *testing.T) []byte {
	t.Helper()
	raw, err := json.Marshal(admissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: q.AdmissionRequest})
	must(t, err)
	return raw
}

// questions makes random questions.
type questions struct {
	t        *testing.T
	random   *rand.Rand
	recorded []*admissionv1.AdmissionRequest
	verbs    []string
	users    []string
	asked    int
}

func newQuestions(t *testing.T, random *rand.Rand, compiled *schema.Schema) *questions {
	t.Helper()
	q := &questions{t: t, random: random}
	all, err := corpus.Load("../../testdata")
	must(t, err)
	for _, s := range all {
		for _, step := range s.Reviewed() {
			if step.Pair != nil {
				continue // an API server never sends these
			}
			request, err := s.Request(step)
			must(t, err)
			switch request.Kind.Group {
			case "", "apps", "autoscaling", "networking.k8s.io", "apiextensions.k8s.io", "resource.k8s.io":
				q.recorded = append(q.recorded, request)
			}
		}
	}
	known := map[string]bool{}
	for _, k := range compiled.Kinds() {
		switch k.Group {
		case "", "apps", "autoscaling", "networking.k8s.io", "example.com", "sea.example.com":
			k.Guarded(2000, func(_ fieldpath.Pattern, n *schema.Node) {
				for _, p := range n.Permissions() {
					known[p.Base().String()] = true
				}
			})
		}
	}
	// Verbs of objects that are created later, and some verbs with parameters.
	for _, verb := range []string{
		"example.com/count", "example.com/pause", "example.com/immutability", "example.com/data", "example.com/label", "example.com/annotations", "example.com/color", "example.com/amount", "example.com/fishing",
		"label(example.com)", "label(pod-security.kubernetes.io)", "example.com/tag(a)", "image(web)", "container(web)", "datum(a)", "annotation(example.com)",
	} {
		known[verbs.Prefix+verb] = true
	}
	q.verbs = slices.Sorted(maps.Keys(known))
	return q
}

// grants returns the verbs of each user. Some have generic verbs; some have the marker and random verbs.
func (q *questions) grants() map[string][]string {
	out := map[string][]string{
		"nobody": {"get"}, "marked": {verbs.Marker}, "star": {verbs.Marker, verbs.All().String()},
		"updater": {"update", "create"}, "patcher": {"patch", "delete"}, "deleter": {"deletecollection", verbs.Marker},
		"painter": {verbs.Marker, "granular:scale", "granular:image", "granular:data", "granular:example.com/size", "granular:example.com/tags", "granular:metadata", "granular:specification"},
	}
	for i := range 6 {
		held := []string{verbs.Marker}
		if i%3 == 0 {
			held = []string{"update", "create", "delete"}
		}
		for _, verb := range q.verbs {
			if q.random.IntN(3) == 0 {
				held = append(held, verb)
			}
		}
		out[fmt.Sprintf("user%d", i)] = held
	}
	q.users = slices.Sorted(maps.Keys(out))
	return out
}

func (q *questions) next() question {
	q.asked++
	var out question
	switch draw := q.random.IntN(10); {
	case draw < 5:
		out = question{q.recorded[q.random.IntN(len(q.recorded))].DeepCopy(), "recorded"}
	case draw < 9:
		out = question{q.custom(), "custom"}
	default:
		out = question{q.fischer(), "aggregated"}
	}
	q.edit(&out)
	if out.Name == "" {
		// An API server knows the name, unless the object is created with generateName.
		out.Name = "one"
	}
	user := q.users[q.random.IntN(len(q.users))]
	out.UID = types.UID(fmt.Sprint(q.asked))
	out.UserInfo = authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated"}}
	return out
}

// edit changes the new object further, or changes the operation of the request.
func (q *questions) edit(out *question) {
	switch q.random.IntN(8) {
	case 0:
		if out.SubResource == "" && out.Object.Raw != nil {
			out.Operation, out.OldObject.Raw = admissionv1.Create, nil
		}
	case 1:
		if out.OldObject.Raw != nil {
			out.Operation, out.Object.Raw = admissionv1.Delete, nil
		}
	case 2:
		if out.Operation == admissionv1.Update {
			out.Object.Raw = out.OldObject.Raw
		}
	}
	if out.Object.Raw == nil || q.random.IntN(3) == 0 {
		return
	}
	object := q.decode(out.Object.Raw)
	for range 1 + q.random.IntN(3) {
		q.change(object)
	}
	out.Object.Raw = q.encode(object)
}

// change makes one change at a random position in an object.
func (q *questions) change(object map[string]any) {
	switch q.random.IntN(6) {
	case 0:
		q.put(object, "metadata", []string{"labels", "annotations"}[q.random.IntN(2)], []string{"example.com/a", "app", "pod-security.kubernetes.io/enforce"}[q.random.IntN(3)])
		return
	case 1:
		if metadata, ok := object["metadata"].(map[string]any); ok && q.random.IntN(3) == 0 {
			delete(metadata, "managedFields")
		}
		return
	}
	at := object
	for {
		keys := slices.Sorted(maps.Keys(at))
		keys = slices.DeleteFunc(keys, func(key string) bool {
			return slices.Contains([]string{"apiVersion", "kind", "name", "namespace", "uid", "managedFields"}, key)
		})
		if len(keys) == 0 {
			return
		}
		key := keys[q.random.IntN(len(keys))]
		switch value := at[key].(type) {
		case map[string]any:
			if q.random.IntN(12) == 0 {
				delete(at, key)
				return
			}
			at = value
		case []any:
			if !q.reorder(at, key, value) {
				return
			}
			item, ok := value[q.random.IntN(len(value))].(map[string]any)
			if !ok {
				return
			}
			at = item
		default:
			at[key] = q.other(value)
			if q.random.IntN(4) == 0 {
				delete(at, key)
			}
			return
		}
	}
}

// reorder changes the list itself, or reports that the change must be in one of its items.
func (q *questions) reorder(at map[string]any, key string, list []any) bool {
	if len(list) == 0 {
		return false
	}
	switch q.random.IntN(5) {
	case 0:
		at[key] = list[1:]
	case 1:
		at[key] = slices.Concat(list[1:], list[:1])
	default:
		return true
	}
	return false
}

func (q *questions) other(value any) any {
	switch value := value.(type) {
	case bool:
		return !value
	case string:
		return value + "x"
	case json.Number:
		return q.random.IntN(10)
	}
	return value
}

// put sets a key of a map two levels below an object.
func (q *questions) put(object map[string]any, outer, inner, key string) {
	for _, name := range []string{outer, inner} {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[name] = next
		}
		object = next
	}
	object[key] = fmt.Sprintf("v%d", q.random.IntN(4))
}

// custom returns a write of a custom resource, in any of its versions.
func (q *questions) custom() *admissionv1.AdmissionRequest {
	kind, plural, versions := "Gadget", "gadgets", []string{"v1", "v1", "v1beta1", "v1alpha1"}
	switch q.random.IntN(8) {
	case 0, 1:
		kind, plural, versions = "Gauge", "gauges", []string{"v1", "v2"}
	case 2:
		kind, plural, versions = "Broken", "broken", []string{"v1"}
	}
	subresource := ""
	if kind == "Gadget" && q.random.IntN(6) == 0 {
		subresource = "status"
	}
	version := versions[q.random.IntN(len(versions))]
	return q.update(metav1.GroupVersionKind{Group: "example.com", Version: version, Kind: kind}, plural, subresource, func() map[string]any {
		spec := map[string]any{"size": q.random.IntN(10), "color": fmt.Sprintf("c%d", q.random.IntN(2))}
		if version != "v1beta1" {
			spec["danger"] = q.random.IntN(4) == 0
			spec["tags"] = map[string]any{[]string{"a", "b"}[q.random.IntN(2)]: "x"}
			spec["parts"] = []any{map[string]any{"name": "p", "count": q.random.IntN(3)}, map[string]any{"name": "q"}}
		}
		return map[string]any{"spec": spec, "status": map[string]any{"size": q.random.IntN(2)}}
	})
}

// fischer returns a write of an object of the aggregated API server.
func (q *questions) fischer() *admissionv1.AdmissionRequest {
	return q.update(metav1.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Fischer"}, "fischers", "", func() map[string]any {
		return map[string]any{"spec": map[string]any{
			"catch": []string{"cod", "eel"}[q.random.IntN(2)], "harbour": map[string]any{"town": []string{"a", "b"}[q.random.IntN(2)]},
			"nets": map[string]any{"wide": []string{"a", "b"}[q.random.IntN(2)]}, "boats": []any{map[string]any{"name": "one"}},
		}}
	})
}

// update returns a change between two objects from the same random source.
func (q *questions) update(gvk metav1.GroupVersionKind, resource, subresource string, draw func() map[string]any) *admissionv1.AdmissionRequest {
	gvr := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: resource}
	out := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Kind: gvk, Resource: gvr, RequestKind: &gvk, RequestResource: &gvr,
		SubResource: subresource, RequestSubResource: subresource, Name: fmt.Sprintf("one%d", q.random.IntN(3)), Namespace: "default",
	}
	owners := []any{map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": gvk.Group + "/" + gvk.Version, "time": "2026-01-05T09:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:size": map[string]any{}}}}}
	before, after := draw(), draw()
	if q.random.IntN(2) == 0 {
		// Most writes change one field.
		after = q.decode(q.encode(before))
		q.change(after)
	}
	for _, object := range []map[string]any{before, after} {
		object["apiVersion"], object["kind"] = strings.TrimPrefix(gvk.Group+"/"+gvk.Version, "/"), gvk.Kind
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["name"], metadata["namespace"], metadata["managedFields"] = out.Name, out.Namespace, owners
		object["metadata"] = metadata
	}
	out.OldObject, out.Object = runtime.RawExtension{Raw: q.encode(before)}, runtime.RawExtension{Raw: q.encode(after)}
	return out
}

func (q *questions) decode(raw []byte) map[string]any {
	q.t.Helper()
	var out map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	must(q.t, decoder.Decode(&out))
	return out
}

func (q *questions) encode(object map[string]any) []byte {
	q.t.Helper()
	raw, err := json.Marshal(object)
	must(q.t, err)
	return raw
}
