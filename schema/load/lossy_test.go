package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/verbs"
)

// versions is a definition with the storage version v1 and the served version v1beta1; top is added beside them.
type versions struct {
	v1, v1beta1 string // the schemas of .spec
	metadata    string
	top         string
	more        string // versions
	status      string
}

func (v versions) String() string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com` + v.metadata + `}
` + v.status + `
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
` + v.top + `
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: ` + v.v1 + `}}}
  - name: v1beta1
    served: true
    storage: false
    subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: ` + v.v1beta1 + `}}}
` + v.more
}

func compileBox(t *testing.T, definition string, more ...string) *schema.Schema {
	t.Helper()
	docs := compile.Documents{}
	for i, text := range append([]string{definition}, more...) {
		d, errs := Decode(fmt.Sprintf("box-%d.yaml", i), []byte(text))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		docs = docs.Append(d)
	}
	builtIn, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	s, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{builtIn}}.Append(docs))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

func boxOf(version string) runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Box"}
}

// TestA1_OnlyEqualVersionsAreLossless: two versions are converted by name only. A version is lossy if a write through it may change the
// stored object without changing what it shows.
func TestA1_OnlyEqualVersionsAreLossless(t *testing.T) {
	const plain = `{type: object, properties: {size: {type: integer}}}`
	object := func(properties string) string { return `{type: object, properties: {` + properties + `}}` }
	for name, c := range map[string]struct {
		versions
		lossy []string
	}{
		"equal":                         {versions{v1: plain, v1beta1: plain}, nil},
		"validations and documentation": {versions{v1: object(`size: {type: integer, minimum: 1, description: The size., title: Size, example: 1}`), v1beta1: plain}, nil},
		"a field less":                  {versions{v1: object(`size: {type: integer}, secret: {type: string}`), v1beta1: plain}, []string{"v1beta1"}},
		"a field more":                  {versions{v1: plain, v1beta1: object(`size: {type: integer}, secret: {type: string}`)}, []string{"v1beta1"}},
		"unknown fields, and fewer below a known field": {versions{
			v1:      object(`policy: {type: object, properties: {locked: {type: boolean}, mode: {type: string}}}`),
			v1beta1: `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {policy: {type: object, properties: {mode: {type: string}}}}}`}, []string{"v1beta1"}},
		"any values":           {versions{v1: `{type: object, additionalProperties: {type: object, properties: {locked: {type: boolean}}}}`, v1beta1: `{type: object, additionalProperties: true}`}, []string{"v1beta1"}},
		"an embedded resource": {versions{v1: object(`t: {type: object, x-kubernetes-embedded-resource: true, properties: {a: {type: string}}}`), v1beta1: object(`t: {type: object, properties: {a: {type: string}}}`)}, []string{"v1beta1"}},
		"null":                 {versions{v1: object(`mode: {type: string, nullable: true, default: open}`), v1beta1: object(`mode: {type: string, default: open}`)}, []string{"v1beta1"}},
		"a default":            {versions{v1: object(`mode: {type: string, default: open}`), v1beta1: object(`mode: {type: string}`)}, []string{"v1beta1"}},
		"a type":               {versions{v1: object(`mode: {type: string}`), v1beta1: object(`mode: {type: integer}`)}, []string{"v1beta1"}},
		"int or string":        {versions{v1: object(`mode: {x-kubernetes-int-or-string: true}`), v1beta1: object(`mode: {type: integer}`)}, []string{"v1beta1"}},
		"a type of lists": {versions{v1: object(`l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], properties: {a: {type: string}}}}`),
			v1beta1: object(`l: {type: array, items: {type: object, properties: {a: {type: string}}}}`)}, []string{"v1beta1"}},
		"items of unknown form": {versions{v1: object(`l: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}`),
			v1beta1: object(`l: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: string}}}}`)}, []string{"v1beta1"}},

		"B2: a version that is neither served nor stored": {versions{v1: plain, v1beta1: plain, more: `  - name: v1alpha1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {old: {type: string}}}}
`}, []string{"v1alpha1"}},
		"objects are stored in both, and the new one has more": {versions{
			v1: object(`size: {type: integer}, secret: {type: string}`), v1beta1: plain, status: "status: {storedVersions: [v1beta1, v1]}"}, []string{"v1beta1"}},
		"objects are stored in both, and the new one has a default more": {versions{
			v1: object(`size: {type: integer}, secret: {type: string, default: x}`), v1beta1: plain, status: "status: {storedVersions: [v1beta1, v1]}"}, []string{"v1", "v1beta1"}},
		"objects are stored in both, and the new one declares a field that was unknown": {versions{
			v1: object(`size: {type: integer}, a: {type: string}`), v1beta1: object(`size: {type: integer}`), status: "status: {storedVersions: [v1beta1, v1]}", more: ""}, []string{"v1beta1"}},
		"objects are stored in both, and the old one takes any key": {versions{
			v1:      `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object, properties: {b: {type: string}}}}}`,
			v1beta1: `{type: object, x-kubernetes-preserve-unknown-fields: true}`, status: "status: {storedVersions: [v1beta1, v1]}"}, []string{"v1", "v1beta1"}},
		"objects are stored in both, and the new one has less": {versions{
			v1: plain, v1beta1: object(`size: {type: integer}, secret: {type: string}`), status: "status: {storedVersions: [v1beta1, v1]}"}, []string{"v1", "v1beta1"}},

		"a webhook":                                                  {versions{v1: plain, v1beta1: plain, top: "  conversion: {strategy: Webhook}"}, []string{"v1beta1"}},
		"a webhook, and objects stored in both":                      {versions{v1: plain, v1beta1: plain, top: "  conversion: {strategy: Webhook}", status: "status: {storedVersions: [v1beta1, v1]}"}, []string{"v1", "v1beta1"}},
		"a webhook that the author vouches for":                      {versions{v1: plain, v1beta1: object(`a: {type: string}`), top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}, nil},
		"a webhook that the author vouches for, and another default": {versions{v1: object(`a: {type: object, properties: {b: {type: boolean, default: false}}}`), v1beta1: object(`a: {type: object, properties: {b: {type: boolean, default: true}}}`), top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}, []string{"v1beta1"}},
		"a webhook that the author vouches for, and a default of what the other keeps unknown":      {versions{v1: object(`a: {type: object, x-kubernetes-preserve-unknown-fields: true}`), v1beta1: object(`a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: array, items: {type: object, properties: {c: {type: boolean, default: true}}}}}}`), top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}, []string{"v1beta1"}},
		"a webhook that the author vouches for, and a default of what the other lacks":              {versions{v1: object(`a: {type: object}`), v1beta1: object(`a: {type: object, properties: {b: {type: boolean, default: true}}}`), top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}, nil},
		"a webhook that the author vouches for, and a default of what the other keeps as any value": {versions{v1: object(`a: {type: object, additionalProperties: true}`), v1beta1: object(`a: {type: object, properties: {b: {type: boolean, default: true}}}`), top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}, []string{"v1beta1"}},
		"a webhook that the author vouches for, and a default in items that the other keeps":        {versions{v1: object(`l: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: string}}}}`), v1beta1: object(`l: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: boolean, default: true}}}}`), top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}, []string{"v1beta1"}},
		"a webhook that the author vouches for, and a default in what is embedded":                  {versions{v1: object(`a: {type: object, x-kubernetes-embedded-resource: true}`), v1beta1: object(`a: {type: object, properties: {kind: {type: string, default: Pod}}}`), top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}, []string{"v1beta1"}},
		"a lossless annotation without a webhook":                                                   {versions{v1: plain, v1beta1: object(`a: {type: string}`), metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}, []string{"v1beta1"}},
		"a lossless annotation that is not true":                                                    {versions{v1: plain, v1beta1: plain, top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "yes"}`}, []string{"v1beta1"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, errs := decodeDefinition("box.yaml", []byte(c.String()), false)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var lossy []string
			for version := range d.losses() {
				lossy = append(lossy, version)
			}
			if slices.Sort(lossy); !slices.Equal(lossy, c.lossy) {
				t.Errorf("lossy are %q, want %q", lossy, c.lossy)
			}
		})
	}
}

// TestA1_ALossyVersionNamesTheCure: the administrator can follow each advice.
func TestA1_ALossyVersionNamesTheCure(t *testing.T) {
	const plain, more = `{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}, b: {type: string}}}`
	for want, c := range map[string]versions{
		`version "v1beta1" does not keep every field: write through version "v1"`:                             {v1: more, v1beta1: plain},
		`version "v1beta1" is converted by a webhook, which may change any field: write through version "v1"`: {v1: plain, v1beta1: plain, top: "  conversion: {strategy: Webhook}"},
		`version "v1beta1" has other defaults than version "v1": write through that version, or give both the same`: {
			v1: `{type: boolean, default: false}`, v1beta1: `{type: boolean, default: true}`, top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`,
		},
		`migrate them to version "v1", then leave no other in status.storedVersions of CustomResourceDefinition "b`: {v1: plain, v1beta1: more, status: "status: {storedVersions: [v1beta1, v1]}"},
	} {
		d, errs := decodeDefinition("box.yaml", []byte(c.String()), false)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := d.losses()["v1beta1"]; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestC3_AVersionThatPrunesTakesTheVerbOfAll: a write through such a version may remove fields that it does not show, so it needs
// granular:*.
func TestC3_AVersionThatPrunesTakesTheVerbOfAll(t *testing.T) {
	s := compileBox(t, versions{v1: `{type: object, properties: {size: {type: integer}, secret: {type: string}}}`, v1beta1: `{type: object, properties: {size: {type: integer}}}`}.String())
	scale := runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	autoscaler := runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}
	deployment := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, c := range []struct {
		name  string
		kind  runtimeschema.GroupVersionKind
		ref   schema.ResourceRef
		lossy bool
	}{
		{"the version that has all", boxOf("v1"), schema.ResourceRef{}, false},
		{"the version that prunes", boxOf("v1beta1"), schema.ResourceRef{}, true},
		{"the scale of the one", scale, schema.ResourceRef{Group: "example.com", Version: "v1", Resource: "boxes", Subresource: "scale"}, false},
		{"the scale of the other", scale, schema.ResourceRef{Group: "example.com", Version: "v1beta1", Resource: "boxes", Subresource: "scale"}, true},
		{"an autoscaler of v1, whose annotations are fields of v2", autoscaler, schema.ResourceRef{}, true},
		{"an autoscaler of v2", autoscaler.GroupKind().WithVersion("v2"), schema.ResourceRef{}, false},
		{"a deployment", deployment, schema.ResourceRef{}, false},
		{"a claim whose requests have another form in the newest version", runtimeschema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1beta1", Kind: "ResourceClaim"}, schema.ResourceRef{}, true},
		{"a claim of another version that has the form of the newest", runtimeschema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1beta2", Kind: "ResourceClaim"}, schema.ResourceRef{}, false},
	} {
		k, err := s.KindFor(c.kind, c.ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fieldperm.Diff(t.Context(), []byte(`{"metadata":{"name":"x"},"spec":{"replicas":2}}`), []byte(`{"metadata":{"name":"x"},"spec":{"replicas":2}}`), k, nil)
		// A write of a Scale may change owners even if it changes no value.
		got = slices.DeleteFunc(got, func(r fieldperm.Requirement) bool { return r.Operation == fieldperm.Ownership })
		if err != nil || (len(got) == 1) != c.lossy {
			t.Errorf("%s: a write of nothing is charged %v, %v; want lossy %v", c.name, got, err, c.lossy)
		}
	}
}

// barriersOf returns the verbs as barriers of sets.
func barriersOf(t *testing.T, uncovered ...string) schema.VerbSet {
	t.Helper()
	set := schema.VerbSet{}
	for _, text := range uncovered {
		v, err := verbs.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		set[v] = schema.Extent{}
	}
	return set
}

// hiddenBarriers returns the barriers that a write through a version must pass even if it changes nothing.
func hiddenBarriers(t *testing.T, s *schema.Schema, gvk runtimeschema.GroupVersionKind, uncovered ...string) []string {
	t.Helper()
	k, err := s.Kind(gvk)
	if err != nil {
		t.Fatal(err)
	}
	set := barriersOf(t, uncovered...)
	got, err := fieldperm.Diff(t.Context(), []byte(`{"metadata":{"name":"x"}}`), []byte(`{"metadata":{"name":"x"}}`), k, set)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range got {
		if got[i].Barred() {
			out = append(out, fmt.Sprint(got[i].Candidates()))
		}
	}
	return out
}

// TestA2_NoVersionIsAWayAroundABarrier: a field that a version does not show may be behind a barrier of another version.
func TestA2_NoVersionIsAWayAroundABarrier(t *testing.T) {
	const (
		less    = `{type: object, properties: {size: {type: integer}}}`
		secret  = `{type: object, properties: {size: {type: integer}, secret: {type: string%s}, tags: {type: object, additionalProperties: {type: string}}}}`
		guarded = ", x-kubernetes-permission-verb: secret, x-kubernetes-permission-excluded%s"
		admin   = `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: a}
spec: {group: example.com, kind: Box, versions: [v1], permissions: [%s]}
`
	)
	always, when := fmt.Sprintf(guarded, ": true"), fmt.Sprintf(guarded, "-when: self == 'x'")
	for name, c := range map[string]struct {
		versions
		admin     string
		uncovered []string
		want      []string
	}{
		"of its author":                   {versions: versions{v1: fmt.Sprintf(secret, always), v1beta1: less}, want: []string{"[granular:secret]"}},
		"of values that it does not show": {versions: versions{v1: fmt.Sprintf(secret, when), v1beta1: less}, want: []string{"[granular:secret]"}},
		"of an administrator":             {versions: versions{v1: fmt.Sprintf(secret, ""), v1beta1: less}, admin: `{path: .spec.secret, verb: secret, excluded: true}`, want: []string{"[granular:secret]"}},
		"with a parameter": {versions: versions{v1: fmt.Sprintf(secret, ""), v1beta1: less},
			admin: `{path: .spec.tags, verb: tags, parameterSource: tag}, {path: ".spec.tags[*]", verb: tag, parameterizedBy: tag, excluded: true}`, want: []string{"[granular:tag]"}},
		"of a set": {versions: versions{v1: fmt.Sprintf(secret, ""), v1beta1: less}, admin: `{path: .spec.secret, verb: secret}`,
			uncovered: []string{"granular:secret", "granular:other"}, want: []string{"[granular:secret]"}},
		"of a set, with a parameter": {versions: versions{v1: fmt.Sprintf(secret, ""), v1beta1: less},
			admin:     `{path: .spec.tags, verb: tags, parameterSource: tag}, {path: ".spec.tags[*]", verb: tag, parameterizedBy: tag}`,
			uncovered: []string{"granular:tag(a)"}, want: []string{"[granular:tag(a)]"}},
		"of a set, at the root":     {versions: versions{v1: fmt.Sprintf(secret, ""), v1beta1: less}, uncovered: []string{"granular:*"}, want: []string{"[granular:*]"}},
		"of a set, in the metadata": {versions: versions{v1: fmt.Sprintf(secret, ""), v1beta1: less, metadata: ""}, admin: `{path: .metadata.labels, verb: labels}`, uncovered: []string{"granular:labels"}, want: []string{"[granular:labels]"}},
		"of labels that a webhook may change": {versions: versions{v1: less, v1beta1: less, top: "  conversion: {strategy: Webhook}"},
			admin: `{path: .metadata.labels, verb: labels}`, uncovered: []string{"granular:labels"}, want: []string{"[granular:labels]"}},
		"of a version that is not served": {versions: versions{v1: less, v1beta1: less, status: "status: {storedVersions: [v0, v1]}", more: `  - name: v0
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: ` + fmt.Sprintf(secret, always) + `}}}
`}, want: []string{"[granular:secret]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var more []string
			if c.admin != "" {
				more = append(more, fmt.Sprintf(admin, c.admin))
			}
			if got := hiddenBarriers(t, compileBox(t, c.String(), more...), boxOf("v1beta1"), c.uncovered...); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestA2_ABarrierOfOneVersionHoldsInAll proves that the barrier holds in all versions that have its path.
func TestA2_ABarrierOfOneVersionHoldsInAll(t *testing.T) {
	const plain = `{type: object, properties: {size: {type: integer}}}`
	for name, guard := range map[string]string{
		"of an administrator": `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: a}
spec: {group: example.com, kind: Box, versions: [v1beta1], permissions: [{path: .spec.size, verb: size, excluded: true}]}
`,
		"over another verb": `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: a}
spec: {group: example.com, kind: Box, versions: [v1], permissions: [{path: .spec.size, verb: other}]}
---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: b}
spec: {group: example.com, kind: Box, versions: [v1beta1], permissions: [{path: .spec.size, verb: size, excludedWhen: self == 2}]}
`,
	} {
		k, err := compileBox(t, versions{v1: plain, v1beta1: plain}.String(), guard).Kind(boxOf("v1"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := fieldperm.Diff(t.Context(), []byte(`{"spec":{"size":1}}`), []byte(`{"spec":{"size":2}}`), k, nil)
		if err != nil || !slices.ContainsFunc(got, func(r fieldperm.Requirement) bool {
			return fmt.Sprint(r.Candidates()) == "[granular:size]" && r.Barred()
		}) {
			t.Errorf("%s: charged %+v, %v", name, got, err)
		}
	}
}

// TestF10_APathOfOneVersion proves that a path which only one version has is not a fault of a document about all versions. A path that no
// version has is a fault.
func TestF10_APathOfOneVersion(t *testing.T) {
	box := versions{v1: `{type: object, properties: {size: {type: integer}, l: {type: array, items: {type: object, properties: {name: {type: string}, a: {type: string}}}}}}`, v1beta1: `{type: object, properties: {length: {type: integer}}}`}.String()
	permission := func(entries string) string {
		return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: a}\nspec: {group: example.com, kind: Box, permissions: [" + entries + "]}\n"
	}
	for entries, want := range map[string]string{
		`{path: .spec.size, verb: size}, {path: .spec.length, verb: length}`:                                                   "",
		`{path: .spec.size, verb: size}, {path: .spec.width, verb: width}`:                                                     `path ".spec.width" does not exist`,
		`{path: ".spec.l[*].name", verb: name, parameterSource: item}, {path: ".spec.l[*].a", verb: a, parameterizedBy: item}`: `the list ".spec.l" is atomic and has no keys: give it x-kubernetes-list-type: map`,
	} {
		docs, errs := Decode("box.yaml", []byte(box+"---\n"+permission(entries)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		_, errs = compile.Compile(docs)
		if got := fmt.Sprint(errs); want == "" && len(errs) > 0 || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", entries, got, want)
		}
	}
}

func TestC2_TheAnnotationNamesEveryServedVersion(t *testing.T) {
	const plain = `{type: object, properties: {secret: {type: string}}}`
	text := versions{v1: plain, v1beta1: plain, metadata: `, annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.secret","verb":"secret","excluded":true}]}'}`}.String()
	if _, errs := Decode("box.yaml", []byte(text)); len(errs) != 1 || !strings.Contains(errs[0].Error(), `says nothing of the served version "v1beta1"`) {
		t.Error(errs)
	}
}

// Each part of two versions is compared once: the definition has 2^60 ways to compare its parts twice.
func TestA1_DefaultsOfDeepVersionsAreComparedOnce(t *testing.T) {
	deep := "{type: boolean, default: true}"
	for range 60 {
		deep = "{type: object, properties: {a: " + deep + "}}"
	}
	v := versions{v1: deep, v1beta1: deep, top: "  conversion: {strategy: Webhook}", metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true"}`}
	d, errs := decodeDefinition("box.yaml", []byte(v.String()), false)
	if len(errs) > 0 || len(d.losses()) > 0 {
		t.Errorf("%v, %v", d, errs)
	}
}
