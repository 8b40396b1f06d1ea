package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// renamedBoxes are objects whose version v1beta1 has one field under another name and one with another type.
const renamedBoxes = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com, annotations: {fieldperm.dev/lossless-conversion: "true"}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://x'}}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, tier: {type: string}, mode: {type: string}}}}}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, LEVEL: {type: string}, mode: MODE}}}}}}
`

// A match condition on a field counts as true in a version in which that field is different, whatever is guarded.
func TestC2_AConditionOnAFieldThatDiffersInAnotherVersion(t *testing.T) {
	const guard = "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: example.com, kind: Box, permissions: [{path: .spec.size, verb: example.com/size}]}\n"
	both := []string{"v1", "v1beta1"}
	for name, c := range map[string]struct {
		expression  string
		level, mode string
		want        []string // the versions in which it counts as true
	}{
		"a field that is renamed":       {expression: "has(object.spec.tier) && object.spec.tier == 'gold'", want: both[1:]},
		"its other name":                {expression: "has(object.spec.level) && object.spec.level == 'gold'", want: both[:1]},
		"a field that has another type": {expression: "has(object.spec.mode) && object.spec.mode == 'gold'", want: both},
		"the parent of a renamed field": {expression: "has(object.spec) && has(object.spec.size) && object.spec.size > 2", want: both},
		"by an index":                   {expression: "'tier' in object['spec'] && object['spec']['tier'] == 'gold'", want: both},
		"the old object":                {expression: "has(oldObject.spec.tier) && oldObject.spec.tier == 'gold'", want: both[1:]},
		"an optional field":             {expression: "object.?spec.?tier.orValue('') == 'gold'", want: both[1:]},
		"one of two":                    {expression: "object.spec.size > 2 || has(object.spec.tier)", want: both[1:]},
		"a field that both have":        {expression: "object.spec.size > 2"},
		"a field that neither has":      {expression: "has(object.spec.color)"},
		"a label":                       {expression: "object.?metadata.labels[?'env'].orValue('') == 'prod'"},
		"the request":                   {expression: "request.userInfo.username == 'bob'"},
		"versions of the same shape":    {expression: "has(object.spec.tier) && object.spec.tier == 'gold' && has(object.spec)", level: "tier", mode: "{type: string}"},
	} {
		t.Run(name, func(t *testing.T) {
			level, mode := "level", "{type: integer}"
			if c.level != "" {
				level, mode = c.level, c.mode
			}
			definition := strings.NewReplacer("LEVEL", level, "MODE", mode).Replace(renamedBoxes)
			s, errs := compileFew(t, definition, guard, setOf("'granular:example.com/size'", "{apiGroups: [example.com], resources: [boxes]}", fmt.Sprintf("{name: a, expression: %q}", c.expression)))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got, where []string
			for _, version := range both {
				kind := metav1.GroupVersionKind{Group: "example.com", Version: version, Kind: "Box"}
				object := map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"size": int64(2)}}
				request := bodyOf(kind, nil)
				request.Objects = func() (any, any, error) { return object, object, nil }
				set, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "example.com", Version: version, Resource: "boxes"}, request)
				if err != nil {
					t.Fatal(err)
				}
				if len(set.ForValues()) == 1 {
					got, where = append(got, version), append(where, "boxes.example.com in version "+version)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("it counts as true in %q, want %q", got, c.want)
			}
			// The author of the set is warned.
			if unread := s.Unread("doc2"); (unread == nil) != (len(where) == 0) || unread != nil && !slices.Equal(unread.Where, where) {
				t.Errorf("the warning is about %+v, want %q", unread, where)
			}
		})
	}
}

// The version of the request counts as well as the version to which the object was converted.
func TestC2_AConditionOnAFieldThatDiffersInTheSentVersion(t *testing.T) {
	definition := strings.NewReplacer("LEVEL", "level", "MODE", "{type: string}").Replace(renamedBoxes)
	s, errs := compileFew(t, definition, setOf("'granular:specification'", "{apiGroups: [example.com], resources: [boxes]}", `{name: a, expression: "has(object.spec.tier) && object.spec.tier == 'gold'"}`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	request := bodyOf(metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Box"}, nil)
	request.SentAs = &runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Box"}
	if set, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "example.com", Version: "v1", Resource: "boxes"}, request); err != nil || len(set.ForValues()) != 1 {
		t.Errorf("it holds: %v, %v", set, err)
	}
}

// A built-in kind has one served version, or the field is the same in all served versions. So its conditions are evaluated.
func TestC2_AConditionOnABuiltInKindIsEvaluated(t *testing.T) {
	for _, c := range []struct {
		kind                       metav1.GroupVersionKind
		resource, verb, expression string
	}{
		{metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", "granular:scale", "has(object.spec) && has(object.spec.replicas) && object.spec.replicas > 9"},
		{metav1.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, "horizontalpodautoscalers", "granular:scaleBounds", "object.?spec.maxReplicas.orValue(0) > 9"},
	} {
		s, errs := compileFew(t, setOf("'"+c.verb+"'", "{apiGroups: ["+c.kind.Group+"], resources: ["+c.resource+"]}", fmt.Sprintf("{name: a, expression: %q}", c.expression)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if set, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: c.kind.Group, Version: c.kind.Version, Resource: c.resource}, bodyOf(c.kind, nil)); err == nil && len(set.ForValues()) > 0 {
			t.Errorf("%s: the condition counts as true", c.kind.Kind)
		} else if err != nil {
			t.Errorf("%s: %v", c.kind.Kind, err)
		}
	}
}
