package schema_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/verbs"
)

// onLabel is a condition that is false for a body without labels, whatever labels the object has.
const onLabel = `{name: onLabel, expression: "object.?metadata.labels[?'env'].orValue('') == 'prod'"}`

// compileFew is compileWith for only the kinds of these tests.
func compileFew(t *testing.T, documents ...string) (*schema.Schema, []error) {
	t.Helper()
	docs := schematest.Only(schematest.Documents(t, documents...), "Deployment", "Scale", "Pod", "Binding", "Eviction", "ServiceAccount", "TokenRequest", "Event", "HorizontalPodAutoscaler")
	// The catalogue's entries for other kinds do not apply here.
	s, errs := schema.Compile(docs)
	return s, slices.DeleteFunc(errs, func(err error) bool { return !strings.HasPrefix(err.Error(), "doc") })
}

// bodyOf is a request of alice in the namespace shop, with a body of a kind.
func bodyOf(kind metav1.GroupVersionKind, labels map[string]any) schema.Request {
	return requestOf(kind, variables{
		Request: map[string]any{"userInfo": map[string]any{"username": "alice"}, "namespace": "shop"},
		Object:  map[string]any{"metadata": map[string]any{"name": "web", "labels": labels}},
	})
}

// variables are the input of match conditions.
type variables struct {
	Request           map[string]any
	Object, OldObject any
}

func requestOf(kind metav1.GroupVersionKind, v variables) schema.Request {
	return schema.Request{
		Kind:    runtimeschema.GroupVersionKind(kind),
		Fields:  func() (map[string]any, error) { return v.Request, nil },
		Objects: func() (any, any, error) { return v.Object, v.OldObject, nil },
	}
}

// A match condition that reads the object counts as true if the body is another object.
func TestC2_AConditionOnTheObjectHoldsForOtherBodies(t *testing.T) {
	var (
		deployment = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		scale      = metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
		pod        = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
		binding    = metav1.GroupVersionKind{Version: "v1", Kind: "Binding"}
		eviction   = metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}
		account    = metav1.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
		token      = metav1.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}
		event      = metav1.GroupVersionKind{Version: "v1", Kind: "Event"}
		newEvent   = metav1.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}
		scales     = schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale"}
		bindings   = schema.ResourceRef{Version: "v1", Resource: "bindings"}
		podBinding = schema.ResourceRef{Version: "v1", Resource: "pods", Subresource: "binding"}
		events     = schema.ResourceRef{Version: "v1", Resource: "events"}
		newEvents  = schema.ResourceRef{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	)
	const (
		pods       = "{apiGroups: [''], resources: [pods]}"
		onUser     = `{name: onUser, expression: "request.userInfo.username == 'bob'"}`
		everything = "{apiGroups: ['*'], resources: ['*']}"
	)
	for name, c := range map[string]struct {
		resources, conditions string
		ref                   schema.ResourceRef
		kind                  metav1.GroupVersionKind
		holds                 bool
	}{
		"the object itself":                      {deployments, onLabel, schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, deployment, false},
		"the object, by a condition that fails":  {deployments, `{name: fails, expression: "object.nothing.there == 1"}`, schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, deployment, true},
		"the object, by its status":              {deployments, onLabel, schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "status"}, deployment, false},
		"a Scale":                                {deployments, onLabel, scales, scale, true},
		"a Scale, for everything":                {everything, onLabel, scales, scale, true},
		"a Scale, other conditions":              {deployments, onUser, scales, scale, false},
		"a Scale, one of two conditions":         {deployments, onUser + ", " + onLabel, scales, scale, false},
		"a Scale, which the set names":           {"{apiGroups: [apps], resources: [deployments/scale]}", onLabel, scales, scale, false},
		"a Scale, which the set names as any":    {"{apiGroups: [apps], resources: ['*/scale']}", onLabel, scales, scale, false},
		"a Scale, with the Deployment named":     {"{apiGroups: [apps], resources: [deployments, deployments/scale]}", onLabel, scales, scale, true},
		"a Binding":                              {pods, onLabel, podBinding, binding, true},
		"a Binding on its own":                   {pods, onLabel, bindings, binding, true},
		"a Binding on its own, for everything":   {everything, onLabel, bindings, binding, true},
		"a Binding, which the set names":         {"{apiGroups: [''], resources: [pods/binding]}", onLabel, podBinding, binding, false},
		"a Binding, by its other name":           {"{apiGroups: [''], resources: [pods/binding]}", onLabel, bindings, binding, false},
		"an Eviction":                            {pods, onLabel, schema.ResourceRef{Version: "v1", Resource: "pods", Subresource: "eviction"}, eviction, true},
		"containers of a Pod":                    {pods, onLabel, schema.ResourceRef{Version: "v1", Resource: "pods", Subresource: "ephemeralcontainers"}, pod, false},
		"a token":                                {"{apiGroups: [''], resources: [serviceaccounts]}", onLabel, schema.ResourceRef{Version: "v1", Resource: "serviceaccounts", Subresource: "token"}, token, true},
		"a ServiceAccount":                       {"{apiGroups: [''], resources: [serviceaccounts]}", onLabel, schema.ResourceRef{Version: "v1", Resource: "serviceaccounts"}, account, false},
		"an Event":                               {"{apiGroups: [''], resources: [events]}", onLabel, events, event, false},
		"an Event of the other group":            {"{apiGroups: [''], resources: [events]}", onLabel, newEvents, newEvent, true},
		"an Event, with both groups named":       {"{apiGroups: ['', events.k8s.io], resources: [events]}", onLabel, newEvents, newEvent, false},
		"an Event, for everything":               {everything, onLabel, newEvents, newEvent, false},
		"an Event that was converted":            {"{apiGroups: [events.k8s.io], resources: [events]}", onLabel, events, newEvent, false},
		"a body that the endpoint does not take": {"{apiGroups: [apps], resources: [deployments/scale]}", onLabel, scales, pod, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFew(t, setOf("'granular:*'", c.resources, c.conditions))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for env, want := range map[string]bool{"test": c.holds, "prod": c.holds || !strings.Contains(c.conditions, "onUser")} {
				got, err := s.Uncovered(t.Context(), c.ref, bodyOf(c.kind, map[string]any{"env": env}))
				holds := len(got.ForValues()) == 1
				if fails := strings.Contains(c.conditions, "fails"); err != nil != fails || holds != want {
					t.Errorf("env %s: it holds: %t, %v; want %t", env, holds, err, want)
				}
				// For changes of owners, only conditions on the request count.
				if owners := len(got) == 1; owners != (holds || !strings.Contains(c.conditions, "onUser")) {
					t.Errorf("env %s: it holds for owners: %t", env, owners)
				}
			}
		})
	}
}

// D8: a write of the object can change owners in the status. So a set on the status holds for these owners in such a write, and for
// nothing else.
func TestD8_C2_ASetOnTheStatusHoldsForItsOwners(t *testing.T) {
	s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [apps], resources: [deployments/status]}", ""))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for subresource, want := range map[string]schema.VerbSet{
		"":       {verbs.All(): {StatusOnly: true}},
		"status": {verbs.All(): {}},
		"scale":  nil,
	} {
		ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: subresource}
		got, err := s.Uncovered(t.Context(), ref, bodyOf(metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, nil))
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", subresource, got, err, want)
		}
	}
}

// D8: a write of the object can also change owners of the fields that a subresource writes, and these owners cannot be told apart from
// others.
func TestD8_C2_ASetOnAPartHoldsForItsOwners(t *testing.T) {
	for resource, want := range map[string]schema.VerbSet{"pods/resize": {verbs.All(): {OwnersOnly: true}}, "'*/resize'": {verbs.All(): {OwnersOnly: true}}, "pods/binding": nil, "pods/eviction": nil} {
		s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [''], resources: ["+resource+"]}", ""))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, at := range []string{"", "ephemeralcontainers"} {
			got, err := s.Uncovered(t.Context(), schema.ResourceRef{Version: "v1", Resource: "pods", Subresource: at}, bodyOf(metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, nil))
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("%s, at %q: %v, %v; want %v", resource, at, got, err, want)
			}
		}
	}
}

// C5: a condition on the endpoint is evaluated as if the owners in the status changed through the status endpoint.
func TestC5_C2_AConditionThatNamesTheEndpointHoldsForOwnersOfTheStatus(t *testing.T) {
	for resources, want := range map[string]schema.VerbSet{"deployments": {verbs.All(): {StatusOnly: true}}, "deployments/status": {verbs.All(): {StatusOnly: true}}, "deployments/scale": nil} {
		s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [apps], resources: ["+resources+"]}", `{name: a, expression: "has(request.subResource) && request.subResource == 'status'"}`))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, bodyOf(metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, nil))
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", resources, got, err, want)
		}
	}
}

// The fields that an expression reads are found in its syntax tree, not in its text.
func TestC2_FieldsThatAConditionReads(t *testing.T) {
	scale := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale"}
	for expression, reads := range map[string]bool{
		"request.userInfo.username == 'object'":                                  false,
		"has(request.options) && request.?options.object.orValue(1) == 2":        false,
		"has(request.userInfo.groups) && 'oldObject' in request.userInfo.groups": false,
		"has(object.metadata) && false":                                          true,
		".object == 1":                                                           true,
		"oldObject == 1":                                                         true,
		"request.userInfo.groups.exists(g, g == oldObject.metadata.name)":        true,
		"[{'a': object}].exists(o, o.a == 1)":                                    true,
		"request.userInfo.username == 'bob' ? object.metadata != null : false":   true,
	} {
		s, errs := compileFew(t, setOf("'granular:scale'", deployments, fmt.Sprintf("{name: a, expression: %q}", expression)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		got, _ := s.Uncovered(t.Context(), scale, bodyOf(metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, nil))
		if holds := len(got.ForValues()) == 1; holds != reads {
			t.Errorf("%s: it holds: %t; want %t", expression, holds, reads)
		}
	}
}

// boxes are objects whose version v1beta1 does not show every field.
const boxes = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  conversion: CONVERSION
  versions:
  - {name: v1, served: true, storage: true, subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, tier: {type: string}}}}}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}
`

// A match condition that reads a field counts as true for a version that may lack the field.
func TestC3_AConditionOnTheObjectHoldsThroughALossyVersion(t *testing.T) {
	const onTier = `{name: onTier, expression: "has(object.spec) && has(object.spec.tier) && object.spec.tier == 'gold'"}`
	v1, v1beta1 := metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Box"}, metav1.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Box"}
	const none, webhook = "{strategy: None}", "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://x'}}}"
	for name, c := range map[string]struct {
		conversion, condition string
		kind                  metav1.GroupVersionKind
		sent                  *metav1.GroupVersionKind
		holds                 bool
	}{
		"the version with all fields":       {none, onTier, v1, nil, false},
		"a version without the field":       {none, onTier, v1beta1, nil, true},
		"sent in a version without it":      {none, onTier, v1, &v1beta1, true},
		"sent in the version that it has":   {none, onTier, v1, &v1, false},
		"metadata, which all versions have": {none, onLabel, v1beta1, nil, false},
		"metadata, plainly selected":        {none, `{name: a, expression: "has(object.metadata.labels.env) && object.metadata.labels.env == 'prod'"}`, v1beta1, nil, false},
		"metadata and more":                 {none, `{name: a, expression: "object.metadata.name == 'x' && has(object.spec)"}`, v1beta1, nil, true},
		"metadata, of a webhook's":          {webhook, onLabel, v1beta1, nil, true},
		"an unknown version":                {none, onLabel, metav1.GroupVersionKind{Group: "example.com", Version: "v9", Kind: "Box"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFew(t, strings.Replace(boxes, "CONVERSION", c.conversion, 1), setOf("'granular:specification'", "{apiGroups: [example.com], resources: [boxes]}", c.condition))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			request := bodyOf(c.kind, map[string]any{"env": "test"})
			request.SentAs = (*runtimeschema.GroupVersionKind)(c.sent)
			got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "example.com", Version: c.kind.Version, Resource: "boxes"}, request)
			if holds := len(got.ForValues()) == 1; err != nil || holds != c.holds {
				t.Errorf("it holds: %t, %v; want %t", holds, err, c.holds)
			}
		})
	}
}

// The places where conditions count as true are reported, and only those at which a guarded field can be written.
func TestC2_WhereConditionsAreNotRead(t *testing.T) {
	custom := strings.Replace(boxes, "CONVERSION", "{strategy: None}", 1)
	for name, c := range map[string]struct {
		verb, resources, conditions string
		want                        []string
	}{
		"a Scale":                    {"granular:scale", deployments, onLabel, []string{"deployments/scale.apps"}},
		"a condition on the request": {"granular:scale", deployments, `{name: a, expression: "request.namespace != 'x'"}`, nil},
		"a field of one endpoint":    {"granular:image", deployments, onLabel, nil},
		"a version of a built-in":    {"granular:scaleBounds", "{apiGroups: [autoscaling], resources: [horizontalpodautoscalers]}", `{name: onLabel, expression: "has(object.spec.metrics)"}`, []string{"horizontalpodautoscalers.autoscaling in version v1"}},
		"the change of a Binding":    {"granular:nodeAssignment", "{apiGroups: [''], resources: [pods/binding]}", `{name: onLabel, expression: "oldObject == null"}`, []string{"bindings", "pods/binding"}},
		"a set on the Binding alone": {"granular:nodeAssignment", "{apiGroups: [''], resources: [pods/binding]}", onLabel, nil},
		"a set on the Scale alone":   {"granular:scale", "{apiGroups: [apps], resources: [deployments/scale]}", onLabel, nil},
		"Bindings":                   {"granular:nodeAssignment", "{apiGroups: [''], resources: [pods]}", onLabel, []string{"bindings", "pods/binding"}},
		"Events of the other group":  {"granular:reason", "{apiGroups: [''], resources: [events]}", onLabel, []string{"events.events.k8s.io"}},
		"a custom resource":          {"granular:scale", "{apiGroups: [example.com], resources: [boxes]}", onLabel, []string{"boxes/scale.example.com"}},
		"a version of it, by fields": {"granular:scale", "{apiGroups: [example.com], resources: [boxes]}", `{name: onLabel, expression: "object.spec.tier == 'gold'"}`, []string{"boxes/scale.example.com", "boxes.example.com in version v1beta1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFew(t, custom, setOf("'"+c.verb+"'", c.resources, c.conditions))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := s.Unread("doc1")
			if c.want == nil {
				if got != nil {
					t.Errorf("got %+v, want nothing", got)
				}
				return
			}
			if got == nil || !slices.Equal(got.Where, c.want) || !slices.Equal(got.Conditions, []string{"onLabel"}) {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
	s, _ := compileFew(t, setOf("'granular:scale'", deployments, onLabel))
	if got := s.Unread("another"); got != nil {
		t.Errorf("of another set: %+v", got)
	}
}

// Admission sees a Binding as CREATE, and it changes a Pod that it does not show. A condition on changes of Pods holds for it.
func TestC2_AConditionOnChangesHoldsForChangesOfStoredObjects(t *testing.T) {
	var (
		pods, podBinding = schema.ResourceRef{Version: "v1", Resource: "pods"}, schema.ResourceRef{Version: "v1", Resource: "pods", Subresource: "binding"}
		bindings         = schema.ResourceRef{Version: "v1", Resource: "bindings"}
		pod, binding     = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, metav1.GroupVersionKind{Version: "v1", Kind: "Binding"}
	)
	for name, c := range map[string]struct {
		resources, expression string
		// created and bound say whether the set holds for the creation of a Pod and for a Binding.
		created, bound bool
	}{
		"of changes":               {"pods", "request.operation == 'UPDATE'", false, true},
		"of changes, by a Binding": {"pods/binding", "request.operation == 'UPDATE'", false, true},
		"of all":                   {"'*'", "request.operation != 'CREATE'", false, true},
		"of creations":             {"pods", "request.operation == 'CREATE'", true, true},
		"on the user of a change":  {"pods", "request.operation == 'UPDATE' && request.userInfo.username == 'alice'", false, true},
		"of another's changes":     {"pods", "request.operation == 'UPDATE' && request.userInfo.username == 'bob'", false, false},
		"of deletions":             {"pods", "request.operation == 'DELETE'", false, false},
		"on the old object":        {"pods/binding", "oldObject != null", false, true},
		"on the new object":        {"pods/binding", "object == null", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [''], resources: ["+c.resources+"]}", fmt.Sprintf("{name: a, expression: %q}", c.expression)))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for _, at := range []struct {
				ref  schema.ResourceRef
				kind metav1.GroupVersionKind
				want bool
			}{{pods, pod, c.created}, {podBinding, binding, c.bound}, {bindings, binding, c.bound}} {
				request := bodyOf(at.kind, nil)
				fields, _ := request.Fields()
				fields["operation"] = "CREATE"
				got, err := s.Uncovered(t.Context(), at.ref, request)
				if holds := len(got.ForValues()) == 1; err != nil || holds != at.want {
					t.Errorf("%v: it holds: %t, %v; want %t", at.ref, holds, err, at.want)
				}
			}
		})
	}
}

// C2: if a set names only the scale, a condition on the object is a condition on the Scale and its replicas.
func TestC2_AConditionOnAScaleSeesTheReplicas(t *testing.T) {
	const reads = `{name: few, expression: "object.spec.replicas < 2 && oldObject.spec.replicas == 0"}`
	s, errs := compileFew(t, setOf("'granular:scale'", "{apiGroups: [apps], resources: [deployments/scale]}", reads), schemaOf("apps", "Deployment", "{path: .spec.replicas, verb: scale, excludedWhen: 'self == 0 || oldSelf == 0'}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale"}
	scale := runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	replicas := func(n int64) any { return map[string]any{"spec": map[string]any{"replicas": n}} }
	for now, want := range map[int64]schema.Extent{0: {}, 1: {}, 2: {OwnersOnly: true}} {
		request := requestOf(metav1.GroupVersionKind(scale), variables{Object: replicas(now), OldObject: replicas(0)})
		got, err := s.Uncovered(t.Context(), ref, request)
		if extent, holds := got[all(t, "granular:scale")]; err != nil || !holds || extent != want {
			t.Errorf("%d replicas: %v, %v; want %v", now, got, err, want)
		}
	}
	k, err := s.KindFor(scale, ref)
	if err != nil {
		t.Fatal(err)
	}
	bars := func(oldSelf, self any) bool {
		return slices.ContainsFunc(k.Root.Map().Child("spec").Map().Child("replicas").Permissions(), func(p *schema.Permission) bool {
			return p.Conditional() && p.Bars(t.Context(), oldSelf, self)
		})
	}
	if !bars(int64(3), nil) || !bars(nil, int64(3)) || bars(int64(3), int64(2)) {
		t.Errorf("to 0 %t, from 0 %t, from 3 to 2 %t", bars(int64(3), nil), bars(nil, int64(3)), bars(int64(3), int64(2)))
	}
}

func all(t *testing.T, text string) verbs.Verb {
	t.Helper()
	v, err := verbs.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
