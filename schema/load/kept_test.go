package load

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/schema"
)

// behindBarriers returns what a change of an object needs because of barriers, of schemas and of sets. old is "" for a new object.
func behindBarriers(t *testing.T, s *schema.Schema, kind runtimeschema.GroupVersionKind, sets schema.VerbSet, old, new string) []change.Requirement {
	t.Helper()
	return slices.DeleteFunc(demandsOf(t, s, kind, sets, old, new), func(r change.Requirement) bool { return !r.Barred() })
}

// demandsOf returns all that a change of an object needs.
func demandsOf(t *testing.T, s *schema.Schema, kind runtimeschema.GroupVersionKind, sets schema.VerbSet, old, new string) []change.Requirement {
	t.Helper()
	k, err := s.Kind(kind)
	if err != nil {
		t.Fatal(err)
	}
	var before []byte
	if old != "" {
		before = []byte(old)
	}
	required, err := fieldperm.Diff(t.Context(), before, []byte(new), k, sets)
	if err != nil {
		t.Fatal(err)
	}
	return required
}

// isBarred reports whether a change of an object needs the verb of a barrier.
func isBarred(t *testing.T, s *schema.Schema, kind runtimeschema.GroupVersionKind, old, new string) bool {
	t.Helper()
	return len(behindBarriers(t, s, kind, nil, old, new)) > 0
}

// inBothOrders calls test with the names of two documents, because the later name wins where two documents say the same.
func inBothOrders(t *testing.T, name string, test func(t *testing.T, one, other string)) {
	t.Run(name, func(t *testing.T) { test(t, "a", "b") })
	t.Run(name+", the other order", func(t *testing.T) { test(t, "b", "a") })
}

// vaults is a custom resource with maps, in some versions with equal schemas.
func vaults(versions ...string) string {
	const text = "{type: object, properties: {secret: {type: string}}}"
	out := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: vaults.example.com}\n" +
		"spec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Vault, plural: vaults, singular: vault}\n  versions:\n"
	for i, version := range versions {
		stored := "false"
		if i == 0 {
			stored = "true"
		}
		out += "  - {name: " + version + ", served: true, storage: " + stored + ", schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {secret: {type: string}, other: {type: string}, " +
			"plain: {type: object, additionalProperties: {type: string}}, items: {type: object, additionalProperties: {type: object, properties: {secret: {type: string}, deep: " + text + "}}}}}}}}}\n"
	}
	return out
}

// TestC2_AnEntryForAKeyKeepsTheBarriersOfOtherDocuments on all keys and on prefixes, also below the key.
func TestC2_AnEntryForAKeyKeepsTheBarriersOfOtherDocuments(t *testing.T) {
	for name, c := range map[string]struct{ one, other, old, new string }{
		"all keys":               {`.spec.items[*].secret`, `{path: '.spec.items["x"].secret', verb: example.com/w}`, `{"items":{"x":{"secret":"a"}}}`, `{"items":{"x":{"secret":"b"}}}`},
		"all keys, a condition":  {`.spec.items[*].secret`, `{path: '.spec.items["x"].secret', verb: example.com/w, excludedWhen: "false"}`, `{"items":{"x":{"secret":"a"}}}`, `{"items":{"x":{"secret":"b"}}}`},
		"deep below all keys":    {`.spec.items[*].deep.secret`, `{path: '.spec.items["x"].deep.secret', verb: example.com/w}`, `{"items":{"x":{"deep":{"secret":"a"}}}}`, `{"items":{"x":{"deep":{"secret":"b"}}}}`},
		"below a prefix":         {`.spec.items["a/"].secret`, `{path: '.spec.items["a/x"].secret', verb: example.com/w}`, `{"items":{"a/x":{"secret":"a"}}}`, `{"items":{"a/x":{"secret":"b"}}}`},
		"all keys, and a prefix": {`.spec.items[*].secret`, `{path: '.spec.items["a/"].secret', verb: example.com/w}`, `{"items":{"a/x":{"secret":"a"}}}`, `{"items":{"a/x":{"secret":"b"}}}`},
		"values":                 {`.spec.plain[*]`, `{path: '.spec.plain["x"]', verb: example.com/w}`, `{"plain":{"x":"a"}}`, `{"plain":{"x":"b"}}`},
		"a prefix of values":     {`.spec.plain["a/"]`, `{path: '.spec.plain["a/x"]', verb: example.com/w}`, `{"plain":{"a/x":"a"}}`, `{"plain":{"a/x":"b"}}`},
		"a prefix that the other document bars too": {
			`.spec.plain["a/"]`, `{path: '.spec.plain["a/"]', verb: example.com/z, excluded: true}, {path: '.spec.plain["a/x"]', verb: example.com/w}`, `{"plain":{"a/x":"a"}}`, `{"plain":{"a/x":"b"}}`,
		},
		"a prefix that both documents bar in the same way": {
			`.spec.plain["a/"]`, `{path: '.spec.plain["a/"]', verb: example.com/y, excluded: true}, {path: '.spec.plain["a/x"]', verb: example.com/w}`, `{"plain":{"a/x":"a"}}`, `{"plain":{"a/x":"b"}}`,
		},
		"a prefix that the other document bars at times": {
			`.spec.plain["a/"]`, `{path: '.spec.plain["a/"]', verb: example.com/z, excludedWhen: "false"}, {path: '.spec.plain["a/x"]', verb: example.com/w}`, `{"plain":{"a/x":"a"}}`, `{"plain":{"a/x":"b"}}`,
		},
	} {
		inBothOrders(t, name, func(t *testing.T, one, other string) {
			s := compileWorkloads(t, vaults("v1"), permissionSchema(one, "example.com", "Vault", `{path: '`+c.one+`', verb: example.com/y, excluded: true}`), permissionSchema(other, "example.com", "Vault", c.other))
			if got := passing(t, s, gvk("example.com", "v1", "Vault"), nil, `{"spec":`+c.old+`}`, `{"spec":`+c.new+`}`); !strings.Contains(got, "[y]") {
				t.Errorf("the barrier of the first document is gone: %q", got)
			}
		})
	}
	s := compileWorkloads(t, vaults("v1"), permissionSchema("a", "example.com", "Vault", `{path: '.spec.plain["a/"]', verb: example.com/y, excluded: true}, {path: '.spec.plain["a/x"]', verb: example.com/w}`))
	if got := passing(t, s, gvk("example.com", "v1", "Vault"), nil, `{"spec":{"plain":{"a/x":"a"}}}`, `{"spec":{"plain":{"a/x":"b"}}}`); got != "[y]" {
		t.Errorf("the barrier of the document's own prefix: %q, want its verb", got)
	}
}

// TestC2_AnEntryForAKeyKeepsTheBarriersOfOtherDocumentsInEverySpelling of the field that the key is in.
func TestC2_AnEntryForAKeyKeepsTheBarriersOfOtherDocumentsInEverySpelling(t *testing.T) {
	definition := strings.Replace(vaults("v1"), "spec: {type: object, ", "spec: {type: object, "+keepUnknown+", ", 1)
	s := compileWorkloads(t, definition, permissionSchema("a", "example.com", "Vault", `{path: '.spec.plain["a/"]', verb: example.com/y, excluded: true}`),
		permissionSchema("b", "example.com", "Vault", `{path: '.spec.plain["a/x"]', verb: example.com/w}`))
	for _, name := range []string{"plain", "Plain"} {
		if !isBarred(t, s, gvk("example.com", "v1", "Vault"), `{"spec":{"`+name+`":{"a/x":"a"}}}`, `{"spec":{"`+name+`":{"a/x":"b"}}}`) {
			t.Errorf("%s: the barrier of the first document is gone", name)
		}
	}
}

// TestC2_KindsDoNotShareWhatOtherDocumentsSay: the labels of two kinds have the same entries, in two documents and in one.
func TestC2_KindsDoNotShareWhatOtherDocumentsSay(t *testing.T) {
	const prefix, key = `{path: '.metadata.labels["example.com/"]', verb: example.com/y, excluded: true}`, `{path: '.metadata.labels["example.com/x"]', verb: example.com/w}`
	for _, kinds := range [][2]string{{"DaemonSet", "StatefulSet"}, {"StatefulSet", "DaemonSet"}} {
		s := compileWorkloads(t, permissionSchema("a", "apps", kinds[0], prefix), permissionSchema("b", "apps", kinds[0], key), permissionSchema("c", "apps", kinds[1], prefix+", "+key))
		for _, kind := range kinds {
			const want = "[y]"
			if got := passing(t, s, gvk("apps", "v1", kind), nil, `{}`, `{"metadata":{"labels":{"example.com/x":"a"}}}`); got != want {
				t.Errorf("%v: the label of a %s needs %q, want %q", kinds, kind, got, want)
			}
		}
	}
}

// TestC3_AKeyKeepsTheJointBarrierOfItsPrefixInOtherVersions: the documents are about one version.
func TestC3_AKeyKeepsTheJointBarrierOfItsPrefixInOtherVersions(t *testing.T) {
	document := func(name, more string) string {
		return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: " + name + "}\nspec:\n  group: example.com\n  kind: Vault\n  versions: [v1]\n" +
			"  permissions:\n  - {path: '.spec.plain[\"a/\"]', verb: example.com/y, excluded: true}\n" + more
	}
	s := compileWorkloads(t, vaults("v1", "v2"), document("a", ""), document("b", "  - {path: '.spec.plain[\"a/x\"]', verb: example.com/w}\n"))
	for _, version := range []string{"v1", "v2"} {
		for field, want := range map[string]bool{`"plain":{"a/x":"a"}`: true, `"plain":{"a/y":"a"}`: true, `"plain":{"b/y":"a"}`: false, `"other":"a"`: false} {
			if got := isBarred(t, s, gvk("example.com", version, "Vault"), `{"spec":{}}`, `{"spec":{`+field+`}}`); got != want {
				t.Errorf("%s: %s is barred: %t, want %t", version, field, got, want)
			}
		}
	}
}

// TestC3_TheJointBarrierOfTwoDocumentsHoldsInOtherVersions, on the field and nowhere else.
func TestC3_TheJointBarrierOfTwoDocumentsHoldsInOtherVersions(t *testing.T) {
	document := func(name, when string) string {
		return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: " + name + "}\nspec:\n  group: example.com\n  kind: Vault\n  versions: [v1]\n" +
			"  permissions: [{path: .spec.secret, verb: example.com/y, excludedWhen: \"" + when + "\"}]\n"
	}
	s := compileWorkloads(t, vaults("v1", "v2"), document("a", "self == 'a'"), document("b", "self == 'b'"))
	for _, version := range []string{"v1", "v2"} {
		for field, want := range map[string]bool{`"secret":"a"`: true, `"secret":"b"`: true, `"secret":"c"`: false, `"other":"a"`: false} {
			if got := isBarred(t, s, gvk("example.com", version, "Vault"), `{"spec":{}}`, `{"spec":{`+field+`}}`); got != want {
				t.Errorf("%s: %s is barred: %t, want %t", version, field, got, want)
			}
		}
	}
}

const keepUnknown = "x-kubernetes-preserve-unknown-fields: true"
