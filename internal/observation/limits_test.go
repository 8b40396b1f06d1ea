package observation

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// validator returns a function that validates a status as API servers with the definition do.
func validator(t *testing.T) func(*v1alpha1.PermissionObservationStatus) error {
	t.Helper()
	raw, err := os.ReadFile("../../config/crd/fieldperm.dev_permissionobservations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, definition); err != nil {
		t.Fatal(err)
	}
	status := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&status, internal, nil); err != nil {
		t.Fatal(err)
	}
	v, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	return func(status *v1alpha1.PermissionObservationStatus) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
		if err != nil {
			t.Fatal(err)
		}
		return validation.ValidateCustomResource(nil, content, v).ToAggregate()
	}
}

// name returns a text of some characters that need more than one byte.
func name(characters int) string { return strings.Repeat("ü", characters) }

// P9: the largest row that a replica can count is valid, and no text of an update makes a row that is not.
func TestP9_EveryRowIsValid(t *testing.T) {
	valid := validator(t)
	full := update{
		name(v1alpha1.MaxObservedUserLength), name(v1alpha1.MaxObservedGroupLength), name(v1alpha1.MaxObservedResourceLength),
		name(v1alpha1.MaxObservedNamespaceLength), name(v1alpha1.MaxObservedNameLength),
	}
	verb := name(v1alpha1.MaxObservedVerbLength)
	for text, c := range map[string]struct {
		change  func(u *update, verb *string)
		omitted int64
		example string
	}{
		"no longer text": {func(*update, *string) {}, 0, full.name},
		"user":           {func(u *update, _ *string) { u.user += "x" }, 1, ""},
		"group":          {func(u *update, _ *string) { u.group += "x" }, 1, ""},
		"resource":       {func(u *update, _ *string) { u.resource += "x" }, 1, ""},
		"verb":           {func(_ *update, verb *string) { *verb += "x" }, 1, ""},
		"namespace":      {func(u *update, _ *string) { u.namespace += "x" }, 1, ""},
		"name":           {func(u *update, _ *string) { u.name += "x" }, 0, ""},
	} {
		t.Run(text, func(t *testing.T) {
			counted, u, verb := &counts{}, full, verb
			c.change(&u, &verb)
			counted.add(&u, []string{verb}, true, start)
			counted.miss(v1alpha1.ObservationGap{From: at(0), To: at(1), Reason: strings.Repeat("why", 1000)})
			// It may pass through a status, and be added to the counts of another replica.
			status := merge(merge(&v1alpha1.PermissionObservationStatus{}, counted), &counts{})
			if err := valid(status); err != nil {
				t.Error(err)
			}
			if status.Writes != 1 || status.Refused != 1 || status.Omitted != c.omitted {
				t.Errorf("%d writes, %d refused, %d omitted", status.Writes, status.Refused, status.Omitted)
			}
			if c.omitted > 0 {
				return
			}
			used := status.Resources[0].Verbs[0]
			if used.Count != 1 || used.Example != (v1alpha1.ObservedObject{Namespace: full.namespace, Name: c.example}) {
				t.Errorf("%+v", used)
			}
		})
	}
}

// P9: the limits are those of the type, so that nothing is left out without need.
func TestP9_TheLimitsAreThoseOfTheType(t *testing.T) {
	valid := validator(t)
	now := metav1.NewTime(start)
	build := func(extra map[string]int) *v1alpha1.PermissionObservationStatus {
		verb := v1alpha1.ObservedVerb{
			Verb: name(v1alpha1.MaxObservedVerbLength + extra["verb"]), FirstTime: now, LastTime: now, Namespaces: []string{name(v1alpha1.MaxObservedNamespaceLength + extra["namespaces"])},
			Example: v1alpha1.ObservedObject{Namespace: name(v1alpha1.MaxObservedNamespaceLength + extra["namespace"]), Name: name(v1alpha1.MaxObservedNameLength + extra["name"])},
		}
		return &v1alpha1.PermissionObservationStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionObserving, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotWritten, LastTransitionTime: now, Message: strings.Repeat("x", maxMessage)}},
			Gaps:       []v1alpha1.ObservationGap{{From: now, To: now, Reason: name(v1alpha1.MaxGapReasonLength + extra["reason"])}},
			Resources: []v1alpha1.ObservedResource{{
				User: name(v1alpha1.MaxObservedUserLength + extra["user"]), Group: name(v1alpha1.MaxObservedGroupLength + extra["group"]),
				Resource: name(v1alpha1.MaxObservedResourceLength + extra["resource"]), Verbs: []v1alpha1.ObservedVerb{verb},
			}},
		}
	}
	if err := valid(build(nil)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"verb", "namespaces", "namespace", "name", "reason", "user", "group", "resource"} {
		if err := valid(build(map[string]int{text: 1})); err == nil {
			t.Errorf("%s: the type has a higher limit", text)
		}
	}
	lists := build(nil)
	for range v1alpha1.MaxObservedResources {
		lists.Resources = append(lists.Resources, lists.Resources[0])
	}
	for range v1alpha1.MaxObservationGaps {
		lists.Gaps = append(lists.Gaps, lists.Gaps[0])
	}
	verb := &lists.Resources[0].Verbs[0]
	for range v1alpha1.MaxObservedNamespaces {
		verb.Namespaces = append(verb.Namespaces, name(len(verb.Namespaces)))
	}
	for range v1alpha1.MaxObservedVerbs {
		lists.Resources[0].Verbs = append(lists.Resources[0].Verbs, *verb)
	}
	err := valid(lists)
	for _, list := range []string{"resources: Too many", "gaps: Too many", "verbs: Too many", "namespaces: Too many"} {
		if err == nil || !strings.Contains(err.Error(), list) {
			t.Errorf("%s: the type has a higher limit", list)
		}
	}
}

// P9: an example is an object. A name that is too long does not replace one, and one replaces nothing.
func TestP9_ExamplesAreObjects(t *testing.T) {
	long := update{"u", "", "roles", "n", strings.Repeat("r", 300)}
	short := update{"u", "", "roles", "n", "short"}
	for _, order := range [][]*update{{&long, &short}, {&short, &long}} {
		c := &counts{}
		for i, u := range order {
			c.add(u, []string{"granular:labels"}, false, start.Add(time.Duration(i)*time.Second))
		}
		used := merge(&v1alpha1.PermissionObservationStatus{}, c).Resources[0].Verbs[0]
		if used.Count != 2 || used.Example.Name != "short" || used.LastTime != at(1) {
			t.Errorf("%+v", used)
		}
	}
}

// P9: users whose names need six bytes for a character leave a status that etcd stores.
func TestP9_NamesThatGrowInJSON(t *testing.T) {
	c := &counts{}
	for i := range v1alpha1.MaxObservedResources {
		user := strings.Repeat("<\x01\u2028ü", 255) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		c.add(&update{user, "apps", "deployments", "n", "o"}, []string{"granular:scale"}, false, start)
	}
	status := merge(&v1alpha1.PermissionObservationStatus{}, c)
	text, err := json.Marshal(status)
	if err != nil || len(text) > maxBytes+maxBytes/8 || status.Omitted == 0 || len(status.Resources) < 100 {
		t.Errorf("%d bytes, %d rows, %d omitted, %v", len(text), len(status.Resources), status.Omitted, err)
	}
	for _, text := range []string{"plain", `"\`, "<>&", "\u2028\u2029", "\x00\n\x1f\x7f", "\ufffd", "\xff", "ü€😀"} {
		if encoded, err := json.Marshal(text); err != nil || stored(text) < len(encoded)-2 {
			t.Errorf("%q: %d bytes, JSON has %d: %v", text, stored(text), len(encoded)-2, err)
		}
	}
}
