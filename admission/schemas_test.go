package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// definition is a CustomResourceDefinition with the property size and an annotation.
func definition(verbs, more string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
  annotations: {fieldperm.dev/permission-verbs: %q}
  %s
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}
`, verbs, more)
}

const goodVerbs = `{"v1":[{"path":".spec.size","verb":"example.com/size"}]}`

func permissions(group, kind, entry string) string {
	return fmt.Sprintf("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec:\n  group: %q\n  kind: %s\n  permissions:\n  - %s\n", group, kind, entry)
}

func uncoveredSet(spec string) string {
	return schematest.UncoveredSet("x", spec)
}

// submit returns the request that creates the document, or updates it from an older one.
func submit(t *testing.T, document, old string) *admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &head); err != nil {
		t.Fatal(err)
	}
	gvk := head.GroupVersionKind()
	req := &admissionv1.AdmissionRequest{
		UID: "u-1", Operation: admissionv1.Create, Name: head.Name,
		Kind:     metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Resource: metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"},
		UserInfo: authenticationv1.UserInfo{Username: "admin"}, Object: runtime.RawExtension{Raw: raw},
	}
	if old != "" {
		req.Operation = admissionv1.Update
		if req.OldObject.Raw, err = yaml.YAMLToJSON([]byte(old)); err != nil {
			t.Fatal(err)
		}
	}
	return req
}

func TestSchemas_FaultyDocumentsAreRefused(t *testing.T) {
	current := schematest.Documents(t, permissions("example.com", "Widget", "{path: .spec.size, verb: example.com/admins}"), permissions("", "Pod", "{path: .spec.hostname, verb: example.com/pods}"))
	r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
	for name, c := range map[string]struct{ document, want string }{
		"good definition":                       {definition(goodVerbs, ""), ""},
		"no annotation":                         {definition("{}", ""), ""},
		"annotation no JSON":                    {definition("{", ""), "/metadata/annotations/fieldperm.dev~1permission-verbs"},
		"bad verb":                              {definition(`{"v1":[{"path":".spec.size","verb":"Size"}]}`, ""), `use "size"`},
		"unknown path":                          {definition(`{"v1":[{"path":".spec.nope","verb":"example.com/size"}]}`, ""), ".spec.nope"},
		"unknown version":                       {definition(`{"v2":[{"path":".spec.size","verb":"example.com/size"}]}`, ""), `"v2"`},
		"administrator's schema no longer fits": {strings.Replace(definition("{}", ""), "size", "length", 1), "doc0:"},

		"good schema":                  {permissions("apps", "Deployment", "{path: .spec.paused, verb: example.com/pause}"), ""},
		"parameter that nothing emits": {permissions("apps", "Deployment", "{path: .spec.paused, verb: example.com/pause, parameterizedBy: nothing}"), `"nothing"`},
		"CEL that does not compile":    {permissions("apps", "Deployment", "{path: .spec.paused, verb: example.com/pause, excludedWhen: 'self =='}"), "/spec/permissions/0"},
		"twice the same path":          {permissions("apps", "Deployment", "{path: .spec.paused, verb: example.com/a}\n  - {path: .spec.paused, verb: example.com/b}"), ".spec.paused"},
		"unknown key":                  {permissions("apps", "Deployment", "{path: .spec.paused, verbs: example.com/a}"), "verbs"},

		"good set":                         {uncoveredSet(`{uncoveredPermissions: ["granular:scale"]}`), ""},
		"set with an administrator's verb": {uncoveredSet(`{uncoveredPermissions: ["granular:example.com/pods"]}`), ""},
		"empty set":                        {uncoveredSet(`{uncoveredPermissions: []}`), "empty"},
		"bad condition":                    {uncoveredSet(`{uncoveredPermissions: ["granular:scale"], matchConditions: [{name: a, expression: "1"}]}`), "/spec/matchConditions/0"},
	} {
		t.Run(name, func(t *testing.T) {
			req := submit(t, c.document, "")
			faults, err := r.Review(t.Context(), req)
			response := SchemaResponse(faults, err, req)
			if response.UID != "u-1" || response.Allowed != (c.want == "") {
				t.Fatalf("got %+v, %v", response.Result, err)
			}
			if response.Allowed {
				return
			}
			status := response.Result
			if status.Code != http.StatusUnprocessableEntity || status.Reason != metav1.StatusReasonInvalid || len(status.Details.Causes) == 0 {
				t.Errorf("got %+v", status)
			}
			mustContain(t, status.Message, "is invalid: ", c.want)
		})
	}
}

func TestSchemas_KindThatMayComeLaterIsAWarning(t *testing.T) {
	current := schematest.Documents(t)
	r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
	for document, want := range map[string]string{
		permissions("example.com", "Widget", "{path: .spec.size, verb: example.com/size}"): "Widget",
		uncoveredSet(`{uncoveredPermissions: ["granular:example.com/nope"]}`):              "granular:example.com/nope",
	} {
		req := submit(t, document, "")
		faults, err := r.Review(t.Context(), req)
		if response := SchemaResponse(faults, err, req); !response.Allowed || !strings.Contains(strings.Join(response.Warnings, " "), want) {
			t.Errorf("got %+v, %v", response, err)
		}
	}
}

func TestSchemas_NewVersionTakesThePlaceOfTheOld(t *testing.T) {
	req := submit(t, definition(goodVerbs, ""), definition("{}", ""))
	current := schematest.Documents(t)
	old := submit(t, definition(`{"v1":[{"path":".spec.size","verb":"example.com/old"}]}`, ""), "")
	if faults := (&SchemaReviewer{}).trial(current, DocumentSource("CustomResourceDefinition", "widgets.example.com"), "CustomResourceDefinition", old.Object.Raw); len(faults) > 0 {
		t.Fatal(faults)
	}
	current = current.Append(compile.Documents{Permissions: []compile.PermissionDocument{{
		Source: DocumentSource("CustomResourceDefinition", "widgets.example.com"), Rank: compile.RankCustomResource, Group: "example.com", Kind: "Widget", Versions: []string{"v1"},
		Entries: []compile.Entry{{Pointer: "/old"}},
	}}})
	current.Permissions[len(current.Permissions)-1].Entries[0].Path = ".spec.gone"
	r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
	if faults, err := r.Review(t.Context(), req); err != nil || len(faults) > 0 {
		t.Errorf("faults %v, %v", faults, err)
	}
}

func TestSchemas_FaultyDocumentMayStillLoseItsFinalizer(t *testing.T) {
	r := &SchemaReviewer{Documents: func() *compile.Documents { d := schematest.Documents(t); return &d }}
	req := submit(t, definition("{", ""), definition("{", "finalizers: [a/b]"))
	if faults, err := r.Review(t.Context(), req); err != nil || len(faults) > 0 {
		t.Errorf("faults %v, %v", faults, err)
	}
	if faults, err := r.Review(t.Context(), submit(t, definition("{", ""), definition("{}", ""))); err != nil || len(faults) == 0 {
		t.Errorf("an update that makes it faulty: %v, %v", faults, err)
	}
}

func TestSchemas_OtherResourcesAreBadRequests(t *testing.T) {
	current := schematest.Documents(t)
	r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
	change := func(f func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionRequest {
		req := submit(t, definition(goodVerbs, ""), "")
		f(req)
		return req
	}
	for name, req := range map[string]*admissionv1.AdmissionRequest{
		"nil":           nil,
		"another kind":  scaling(),
		"other version": change(func(r *admissionv1.AdmissionRequest) { r.Kind.Version = "v1beta1" }),
		"DELETE":        change(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete }),
		"status":        change(func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }),
		"no object":     change(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }),
		"no old object": change(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }),
		"no JSON":       change(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update; r.OldObject.Raw = []byte("x") }),
	} {
		t.Run(name, func(t *testing.T) {
			faults, err := r.Review(t.Context(), req)
			if response := SchemaResponse(faults, err, req); response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("got %+v", response)
			}
		})
	}
	for name, r := range map[string]*SchemaReviewer{"zero": {}, "not loaded": {Documents: func() *compile.Documents { return nil }}} {
		req := submit(t, definition(goodVerbs, ""), "")
		faults, err := r.Review(t.Context(), req)
		if response := SchemaResponse(faults, err, req); response.Allowed || response.Result.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: got %+v", name, response)
		}
	}
}

// If a document replaces the verb of a set's barrier, the barrier would no longer hold. So the document is refused, and its author learns
// the reason.
func TestA6_VerbsOfBarriersAreNotTakenAway(t *testing.T) {
	onNodes := func(verb string) string {
		return `{uncoveredPermissions: ["` + verb + `"], resources: [{apiGroups: [""], resources: [nodes]}]}`
	}
	const onPods = `{uncoveredPermissions: ["granular:image(web)"], resources: [{apiGroups: [""], resources: [pods]}]}`
	for name, c := range map[string]struct{ set, kind, entry, want string }{
		"replaced":              {onNodes("granular:taints"), "Node", "{path: .spec.taints, verb: example.com/taints}", `takes verb "granular:taints" away from "nodes"`},
		"kept elsewhere":        {onNodes("granular:specification"), "Node", "{path: .spec.taints, verb: example.com/taints}", ""},
		"another verb":          {onNodes("granular:labels"), "Node", "{path: .spec.taints, verb: example.com/taints}", ""},
		"another treatment":     {onNodes("granular:label(example.com)"), "Node", "{path: '.metadata.labels[*]', verb: label, parameterizedBy: labelKey}", `takes verb "granular:label(example.com)" away from "nodes"`},
		"the same treatment":    {onNodes("granular:label(example.com)"), "Node", "{path: '.metadata.labels[*]', verb: label, parameterizedBy: labelKey, parameterTreatment: slash-delimited-prefix}", ""},
		"without its parameter": {onNodes("granular:label"), "Node", "{path: '.metadata.labels[*]', verb: label, parameterizedBy: labelKey}", ""},
		"for one key":           {onNodes("granular:label(example.com)"), "Node", `{path: '.metadata.labels["example.com/a"]', verb: label, parameterizedBy: labelKey}`, ""},
		"another verb of a key": {onNodes("granular:label(example.com)"), "Node", `{path: '.metadata.labels["example.com/a"]', verb: example.com/a}`, ""},
		"another expression":    {onPods, "Pod", `{path: '.spec.containers[*].image', verb: image, parameterizedBy: containerName, parameterExpression: "self == 'web' ? 'x' : 'web'"}`, `takes verb "granular:image(web)" away from "pods"`},
		"no parameter":          {onPods, "Pod", "{path: '.spec.containers[*].image', verb: image}", `takes verb "granular:image(web)" away from "pods"`},
		"another source":        {onPods, "Pod", "{path: '.spec.containers[*].image', verb: image, parameterSource: containerName, parameterizedBy: containerName}", `takes verb "granular:image(web)" away from "pods"`},
		"from one of several":   {onPods, "Pod", "{path: '.spec.initContainers[*].image', verb: example.com/image}", `takes verb "granular:image(web)" away from "pods"`},
	} {
		t.Run(name, func(t *testing.T) {
			current := schematest.Documents(t, uncoveredSet(c.set))
			r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
			req := submit(t, permissions("", c.kind, c.entry), "")
			faults, err := r.Review(t.Context(), req)
			response := SchemaResponse(faults, err, req)
			if response.Allowed != (c.want == "") || c.want != "" && !strings.Contains(response.Result.Message, c.want) {
				t.Errorf("got %+v, %v", response, err)
			}
		})
	}
}

func TestF4_ReplacingAHeldVerbIsAWarning(t *testing.T) {
	current := schematest.Documents(t)
	req := submit(t, permissions("", "Node", "{path: .spec.taints, verb: example.com/taints}"), "")
	many := func(n int) func(runtimeschema.GroupKind, func(string) bool) ([]string, error) {
		return func(kind runtimeschema.GroupKind, is func(string) bool) ([]string, error) {
			if kind.Kind != "Node" || !is("granular:taints") || is("granular:specification") {
				t.Errorf("asked about %v", kind)
			}
			return strings.Split(strings.Repeat("User ann (ClusterRole a),", n), ",")[:n], nil
		}
	}
	for name, c := range map[string]struct {
		holders func(runtimeschema.GroupKind, func(string) bool) ([]string, error)
		want    string
	}{
		"held":        {many(1), "granular:taints writes .spec.taints no more: held by User ann (ClusterRole a)"},
		"held by 7":   {many(7), "and 2 more"},
		"not held":    {many(0), ""},
		"not known":   {func(runtimeschema.GroupKind, func(string) bool) ([]string, error) { return nil, ErrHoldersUnknown }, "no authorizer of type RBAC"},
		"not in time": {func(runtimeschema.GroupKind, func(string) bool) ([]string, error) { return nil, errors.New("too old") }, "not known here: too old"},
		"nobody asks": {nil, "who holds it is not known here"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }, Holders: c.holders}
			faults, err := r.Review(t.Context(), req)
			response := SchemaResponse(faults, err, req)
			if warnings := strings.Join(response.Warnings, "; "); !response.Allowed || (warnings == "") != (c.want == "") || !strings.Contains(warnings, c.want) {
				t.Errorf("got %q, %+v, %v", warnings, response.Result, err)
			}
		})
	}
}

// A definition with old faults, from a document that was created while fieldperm was down, can be repaired step by step. An update that
// adds a fault is refused.
func TestSchemas_AFaultyDefinitionCanBeCorrected(t *testing.T) {
	// Neither path exists in the definition.
	current := schematest.Documents(t, permissions("example.com", "Widget", "{path: .spec.length, verb: example.com/length}\n  - {path: .spec.width, verb: example.com/width}"))
	r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
	with := func(verbs, labels string, fields ...string) string {
		properties := "size: {type: integer}"
		for _, f := range fields {
			properties += ", " + f + ": {type: integer}"
		}
		return strings.Replace(definition(verbs, "labels: {a: "+labels+"}"), "size: {type: integer}", properties, 1)
	}
	before := with("{}", "b")
	for name, c := range map[string]struct {
		old, updated string
		allowed      bool
		warning      string
	}{
		"both are corrected":                 {before, with("{}", "b", "length", "width"), true, ""},
		"one is corrected":                   {before, with("{}", "b", "length"), true, `.spec.width`},
		"nothing to do with it":              {before, with("{}", "b", "depth"), true, ".spec.length"},
		"another fault comes":                {before, with(`{"v1":[{"path":".spec.nope","verb":"example.com/size"}]}`, "b"), false, ""},
		"one is corrected, another is added": {with("{}", "b", "length"), with("{}", "b", "width"), false, ""},
		"a good one becomes faulty":          {with("{}", "b", "length", "width"), before, false, ""},
		"new":                                {"", before, false, ""},
		"its own fault stays":                {with(`{"v1":[{"path":".spec.nope","verb":"example.com/size"}]}`, "b", "length", "width"), with(`{"v1":[{"path":".spec.nope","verb":"example.com/size"}]}`, "b", "length", "width", "depth"), true, ".spec.nope"},
	} {
		t.Run(name, func(t *testing.T) {
			req := submit(t, c.updated, c.old)
			faults, err := r.Review(t.Context(), req)
			response := SchemaResponse(faults, err, req)
			got := strings.Join(response.Warnings, "\n")
			if response.Allowed != c.allowed || !strings.Contains(got, c.warning) || (c.warning == "") != (got == "") {
				t.Errorf("allowed %t, warnings %q, %+v", response.Allowed, got, response.Result)
			}
		})
	}
}

// A definition that no longer has a path of a PermissionSchema is refused. kubectl shows the causes, so they name the PermissionSchema: its
// pointer alone would look like one into the definition. DocumentSource names the documents of a cluster; here the source is doc0.
func TestSchemas_ACauseNamesTheOtherDocument(t *testing.T) {
	current := schematest.Documents(t, permissions("example.com", "Widget", "{path: .spec.length, verb: example.com/length}"))
	r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
	req := submit(t, definition("{}", "labels: {a: b}"), "")
	faults, err := r.Review(t.Context(), req)
	response := SchemaResponse(faults, err, req)
	if err != nil || response.Allowed || len(response.Result.Details.Causes) != 1 {
		t.Fatalf("got %+v, %v", response, err)
	}
	cause := response.Result.Details.Causes[0]
	if cause.Field != "doc0:/spec/permissions/0" || !strings.HasPrefix(cause.Message, `path ".spec.length" does not exist`) {
		t.Errorf("field %q, message %q", cause.Field, cause.Message)
	}
}

// TestSchemas_CompilesAreBounded: each takes memory for all documents, so a request that gets no turn in time is refused, and not compiled.
func TestSchemas_CompilesAreBounded(t *testing.T) {
	current := schematest.Documents(t)
	r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }, Compiles: semaphore.NewWeighted(1)}
	req := submit(t, definition(goodVerbs, ""), "")
	if !r.Compiles.TryAcquire(1) {
		t.Fatal("no turn is free")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := r.Review(ended, req); Code(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "try again") {
		t.Errorf("without a turn: %v", err)
	}
	r.Compiles.Release(1)
	for range 2 { // Each gives its turn back.
		if faults, err := r.Review(t.Context(), req); err != nil || len(faults) > 0 {
			t.Errorf("with a turn: %v, %v", faults, err)
		}
	}
}
