package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// TestC2_ScaleOfACustomResourceHasItsBarrier: the names and paths come from the definition.
func TestC2_ScaleOfACustomResourceHasItsBarrier(t *testing.T) {
	const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oxen.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Ox, plural: oxen, singular: ox, listKind: OxList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.herd.size, statusReplicasPath: .status.size}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              herd:
                type: object
                properties:
                  size: {type: integer, x-kubernetes-permission-verb: herdSize, x-kubernetes-permission-excluded: true}
          status: {type: object, properties: {size: {type: integer}}}
`
	s := compileBox(t, definition)
	k, err := s.KindFor(runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, schema.ResourceRef{Group: "example.com", Resource: "oxen", Subresource: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	permissions := k.Root.Map().Child("spec").Map().Child("replicas").Permissions()
	if len(permissions) != 1 || permissions[0].Base().Name() != "herdSize" || !permissions[0].MayBar() {
		t.Errorf("permissions of the replicas: %v", permissions)
	}
}

// TestC2_AnUncoveredVerbOfTheScaleIsPassedByItselfAlone: the object's replicas have another verb, and there is a barrier above them.
func TestC2_AnUncoveredVerbOfTheScaleIsPassedByItselfAlone(t *testing.T) {
	permissions := "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: %s, kind: %s, permissions: [%s]}\n"
	s := compileBox(t, versions{v1: `{type: object, properties: {size: {type: integer}}}`, v1beta1: `{type: object, properties: {size: {type: integer}}}`}.String(),
		fmt.Sprintf(permissions, "autoscaling", "Scale", "{path: .spec.replicas, verb: scale}"),
		fmt.Sprintf(permissions, "example.com", "Box", "{path: .spec, verb: locked, excluded: true}, {path: .spec.size, verb: size}"))
	k, err := s.KindFor(gvk("autoscaling", "v1", "Scale"), schema.ResourceRef{Group: "example.com", Version: "v1", Resource: "boxes", Subresource: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	uncovered := schema.VerbSet{k.Root.Map().Child("spec").Map().Child("replicas").Permissions()[0].Base(): {}}
	for old, path := range map[string]string{`{"spec":{"replicas":1}}`: ".spec.replicas", `{}`: ".spec.replicas"} {
		for set, want := range map[*schema.VerbSet][]string{
			{}:         {"[granular:locked granular:size]"},
			&uncovered: {"[granular:scale]", "[granular:locked granular:size]"},
		} {
			got, err := fieldperm.Diff(t.Context(), []byte(old), []byte(`{"spec":{"replicas":2}}`), k, *set)
			if err != nil {
				t.Fatal(err)
			}
			var bars []string
			for i := range got {
				if got[i].Barred() && got[i].Path.String() == path {
					bars = append(bars, fmt.Sprint(got[i].Candidates()))
				}
			}
			if !slices.Equal(bars, want) {
				t.Errorf("from %s: barriers %q, want %q", old, bars, want)
			}
		}
	}
}

// TestC2_EachVersionScalesItsOwnReplicas: two versions without conversion may have their replicas in different fields.
func TestC2_EachVersionScalesItsOwnReplicas(t *testing.T) {
	fields := `{type: object, properties: {size: {type: integer}, count: {type: integer}}}`
	definition := versions{v1: fields, v1beta1: fields}.String()
	at := strings.LastIndex(definition, ".spec.size")
	definition = definition[:at] + ".spec.count" + definition[at+len(".spec.size"):]
	s := compileBox(t, definition, barrier("example.com", "Box", ".spec.size", "size", "excluded: true"), barrier("example.com", "Box", ".spec.count", "count", "excluded: true"))
	for version, want := range map[string][]string{"v1": {"size"}, "v1beta1": {"count"}, "": {"size", "count"}} {
		k, err := s.KindFor(gvk("autoscaling", "v1", "Scale"), schema.ResourceRef{Group: "example.com", Version: version, Resource: "boxes", Subresource: "scale"})
		if err != nil {
			t.Fatal(err)
		}
		requirements, err := fieldperm.Diff(t.Context(), []byte(`{"spec":{"replicas":1}}`), []byte(`{"spec":{"replicas":2}}`), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range requirements {
			for _, v := range requirements[i].Candidates() {
				got = append(got, v.Name())
			}
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("version %q: passed by %q, want %q", version, got, want)
		}
	}
}

// TestC2_AKeyOnTheWayToTheReplicasIsAParameter: the Scale's own field has no such key, and a set can name it nevertheless.
func TestC2_AKeyOnTheWayToTheReplicasIsAParameter(t *testing.T) {
	fields := `{type: object, properties: {pools: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}}}}}}`
	definition := strings.ReplaceAll(versions{v1: fields, v1beta1: fields}.String(), ".spec.size", ".spec.pools.main.size")
	entries := `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: pools}
spec: {group: example.com, kind: Box, permissions: [{path: .spec.pools, verb: example.com/pools, parameterSource: pool}, {path: '.spec.pools[*]', verb: example.com/pool, parameterizedBy: pool}]}
`
	s := compileBox(t, definition, entries)
	required := func(kind runtimeschema.GroupVersionKind, old, new, verb string) string {
		t.Helper()
		k, err := s.KindFor(kind, schema.ResourceRef{Group: "example.com", Version: "v1", Resource: "boxes", Subresource: "scale"})
		if err != nil {
			t.Fatal(err)
		}
		barrier, err := verbs.Parse(verb)
		if err != nil {
			t.Fatal(err)
		}
		requirements, err := fieldperm.Diff(t.Context(), []byte(old), []byte(new), k, schema.VerbSet{barrier: {}})
		if err != nil || len(requirements) != 1 {
			t.Fatalf("%v: %v, %v", kind, requirements, err)
		}
		return fmt.Sprint(requirements[0].Barred(), requirements[0].Candidates())
	}
	for verb, bars := range map[string]bool{"granular:example.com/pool(main)": true, "granular:example.com/pool(other)": false} {
		scale := required(gvk("autoscaling", "v1", "Scale"), `{"spec":{"replicas":1}}`, `{"spec":{"replicas":2}}`, verb)
		box := required(gvk("example.com", "v1", "Box"), `{"spec":{"pools":{"main":{"size":1}}}}`, `{"spec":{"pools":{"main":{"size":2}}}}`, verb)
		if scale != box || !strings.HasPrefix(scale, fmt.Sprint(bars)) {
			t.Errorf("%s: through scale %s, else %s", verb, scale, box)
		}
	}
}

// TestC2_AScaleShowsZeroForAnObjectWithoutReplicas: the Scale of a custom resource is the same for 0 and for no replicas, and writes 0. A
// built-in object always has replicas. A write that changes no value may change owners (D8), for which every barrier holds.
func TestC2_AScaleShowsZeroForAnObjectWithoutReplicas(t *testing.T) {
	s := compileBox(t, versions{v1: `{type: object, properties: {size: {type: integer}}}`, v1beta1: `{type: object, properties: {size: {type: integer}}}`}.String(),
		"apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: example.com, kind: Box, permissions: [{path: .spec.size, verb: size, excludedWhen: 'oldSelf == null || self == 0'}]}\n")
	of := func(group, resource, subresource string) *schema.Kind {
		k, err := s.KindFor(gvk("autoscaling", "v1", "Scale"), schema.ResourceRef{Group: group, Version: "v1", Resource: resource, Subresource: subresource})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	custom, other, builtIn := of("example.com", "boxes", "scale"), of("example.com", "unknown", "scale"), of("apps", "deployments", "scale")
	for _, c := range []struct {
		k                *schema.Kind
		old, new         string
		charged, barring bool
	}{
		{custom, `{}`, `{}`, true, true},
		{custom, `{"spec":{"replicas":0}}`, `{"spec":{"replicas":0}}`, true, true},
		{custom, `{"spec":{}}`, `{"spec":{"replicas":2}}`, true, true},
		{custom, `{"spec":{"replicas":2}}`, `{"spec":{}}`, true, true},
		{custom, `{"spec":{"replicas":2}}`, `{"spec":{"replicas":3}}`, true, false},
		{custom, `{"spec":{"replicas":2}}`, `{"spec":{"replicas":2}}`, true, true},
		{other, `{}`, `{}`, true, false},
		{builtIn, `{}`, `{}`, true, false},
	} {
		got, err := fieldperm.Diff(t.Context(), []byte(c.old), []byte(c.new), c.k, nil)
		if err != nil || slices.ContainsFunc(got, func(r fieldperm.Requirement) bool { return r.Path.String() == ".spec.replicas" }) != c.charged ||
			slices.ContainsFunc(got, func(r fieldperm.Requirement) bool { return r.Barred() }) != c.barring {
			t.Errorf("from %s to %s: %v, %v", c.old, c.new, got, err)
		}
	}
}

// D8: the owners of the replicas may also change when a write replaces 0 by 0. A conditional barrier holds for owners.
func TestD8_AScaleThatShowsZeroChangesOwners(t *testing.T) {
	s := compileBox(t, versions{v1: `{type: object, properties: {size: {type: integer}}}`, v1beta1: `{type: object, properties: {size: {type: integer}}}`}.String(),
		"apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: example.com, kind: Box, permissions: [{path: .spec.size, verb: size, excludedWhen: 'self == null'}]}\n")
	k, err := s.KindFor(gvk("autoscaling", "v1", "Scale"), schema.ResourceRef{Group: "example.com", Version: "v1", Resource: "boxes", Subresource: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	const zero = `{"spec":{"replicas":0}}`
	got, err := fieldperm.Diff(t.Context(), []byte(zero), []byte(zero), k, nil)
	if err != nil || !slices.ContainsFunc(got, func(r fieldperm.Requirement) bool { return r.Operation == fieldperm.Ownership && r.Barred() }) {
		t.Errorf("%v, %v, want owners of the replicas behind the barrier", got, err)
	}
}
