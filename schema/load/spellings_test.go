package load

import (
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// passingOf is passing with what documents and sets say about a resource.
func passingOf(t *testing.T, kind runtimeschema.GroupVersionKind, resource, old, new string, documents ...string) string {
	t.Helper()
	s, errs := compileFragments(t, documents...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	sets, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: kind.Group, Version: kind.Version, Resource: resource}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return passing(t, s, kind, sets, old, new)
}

var (
	vaultKind     = gvk("example.com", "v1", "Vault")
	runnerKind    = gvk("example.com", "v1", "Runner")
	runnerNetwork = permissionSchema("a", "example.com", "Runner", `{path: .spec.template.spec.hostNetwork, verb: example.com/y, excluded: true}`)
)

// TestG5_C2_AnIncludeOfConditionsSaysNothingAboutNames: documents may include the fragment anywhere.
func TestG5_C2_AnIncludeOfConditionsSaysNothingAboutNames(t *testing.T) {
	secret := permissionSchema("a", "example.com", "Vault", `{path: .spec.secret, verb: example.com/y, excluded: true}`)
	conditions := permissionSchema("b", "example.com", "Vault", `{path: .spec, include: conditions}`)
	if got := passingOf(t, vaultKind, "vaults", `{"spec":{"x":1}}`, `{"spec":{"x":1,"Secret":"a"}}`, unknownVaults(), secret, conditions); got != "[y]" {
		t.Errorf("a custom resource: %q", got)
	}
	free := runner("{type: object, " + withKey + ", " + keepUnknown + "}")
	conditions = permissionSchema("b", "example.com", "Runner", `{path: .spec.template, include: conditions}`)
	if got := passingOf(t, runnerKind, "runners", `{"spec":{"template":{"x":{}}}}`, `{"spec":{"template":{"x":{},"Spec":{"hostNetwork":true}}}}`, free, runnerNetwork, conditions); got != "[y]" {
		t.Errorf("a template: %q", got)
	}
}

func TestC2_AVerbOfAllKeysKeepsBarriersBelowOneKey(t *testing.T) {
	definition := strings.Replace(vaults("v1"), "metadata: {name: vaults.example.com}", `metadata: {name: vaults.example.com, annotations: {fieldperm.dev/permission-verbs: '{"v1":[`+
		`{"path":".spec.items[\"x\"].secret","verb":"example.com/y","excluded":true},{"path":".spec.plain[\"x\"]","verb":"example.com/y","excluded":true}]}'}}`, 1)
	all := permissionSchema("b", "example.com", "Vault", `{path: '.spec.items[*].secret', verb: example.com/w}, {path: '.spec.plain[*]', verb: example.com/w}`)
	if got := passingOf(t, vaultKind, "vaults", `{"spec":{"plain":{"x":"a"}}}`, `{"spec":{"plain":{"x":"b"}}}`, definition, all); got != "[y]" {
		t.Errorf("a value: %q", got)
	}
	if got := passingOf(t, vaultKind, "vaults", `{"spec":{"items":{"x":{"secret":"a"}}}}`, `{"spec":{"items":{"x":{"secret":"b"}}}}`, definition, all); got != "[y]" {
		t.Errorf("a field of a value: %q", got)
	}
}

func TestC2_TheAuthorsBarrierLeavesThatOfTheAdministrator(t *testing.T) {
	admin := permissionSchema("b", "example.com", "Vault", `{path: '.spec.items[*].secret', verb: example.com/w, excluded: true}`)
	for _, how := range []string{`"excluded":true`, `"excludedWhen":"false"`} {
		def := strings.Replace(vaults("v1"), "metadata: {name: vaults.example.com}", `metadata: {name: vaults.example.com, annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.items[\"x\"].secret","verb":"example.com/y",`+how+`}]}'}}`, 1)
		got := passingOf(t, vaultKind, "vaults", `{"spec":{"items":{"x":{"secret":"a"}}}}`, `{"spec":{"items":{"x":{"secret":"b"}}}}`, def, admin)
		if got == "[y]" || got == "[w y]" {
			t.Errorf("%s: y passes without w: %s", how, got)
		}
	}
}

func TestC2_APrefixKeepsTheBarriersOfOtherSpellings(t *testing.T) {
	key := permissionSchema("a", "example.com", "Vault", `{path: '.spec["a/secret"]', verb: example.com/y, excluded: true}`)
	prefix := permissionSchema("b", "example.com", "Vault", `{path: '.spec["a/"]', verb: example.com/w}`)
	old, new := `{"spec":{"z":1}}`, `{"spec":{"z":1,"a/Secret":"b"}}`
	if got := passingOf(t, vaultKind, "vaults", old, new, unknownVaults(), key); got != "[y]" {
		t.Errorf("alone: %q", got)
	}
	if got := passingOf(t, vaultKind, "vaults", old, new, unknownVaults(), key, prefix); got != "[y]" {
		t.Errorf("with a prefix: %q", got)
	}
	barred := permissionSchema("a", "example.com", "Vault", `{path: '.spec["a/"]', verb: example.com/y, excluded: true}`)
	if got := passingOf(t, vaultKind, "vaults", old, `{"spec":{"z":1,"A/secret":"b"}}`, unknownVaults(), barred); got != "[y]" {
		t.Errorf("a prefix in another spelling: %q", got)
	}
}

// TestC2_KeysOfMapsThatLeadToPodsAreExact: API servers keep two keys of a map that differ in case.
func TestC2_KeysOfMapsThatLeadToPodsAreExact(t *testing.T) {
	const pool = `{type: object, properties: {size: {type: integer}, template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`
	definition := strings.Replace(runner("{type: object, "+keepUnknown+"}"), "name: {type: string}", "pools: {type: object, additionalProperties: "+pool+"}", 1)
	const old, new = `{"spec":{"pools":{"Web":{"size":1}}}}`, `{"spec":{"pools":{"Web":{"size":2}}}}`
	barred := permissionSchema("a", "example.com", "Runner", `{path: '.spec.pools[*].template', include: podTemplate}, {path: '.spec.pools["web"]', verb: example.com/web, excluded: true}`)
	if got := passingOf(t, runnerKind, "runners", old, new, definition, barred); got != "" {
		t.Errorf("the barrier of another key: %q", got)
	}
}

// TestC2_AKeyInAnotherSpellingKeepsTheBarrierOfItsPrefix: the verb of a key does not pass the barrier on the prefix, in any spelling.
func TestC2_AKeyInAnotherSpellingKeepsTheBarrierOfItsPrefix(t *testing.T) {
	vault := func(name, permissions string) string {
		return permissionSchema(name, "example.com", "Vault", permissions)
	}
	prefix := vault("a", `{path: '.spec["a/"]', verb: example.com/y, excluded: true}`)
	all := vault("c", `{path: '.spec[*]', verb: example.com/v}`)
	for _, key := range []string{"a/secret", "a/Secret", "A/secret", "A/SECRET"} {
		for what, documents := range map[string][]string{
			"another document": {prefix, vault("b", `{path: '.spec["A/secret"]', verb: example.com/w}`)},
			"and one for all":  {prefix, vault("b", `{path: '.spec["A/secret"]', verb: example.com/w}`), all},
		} {
			if got := passingOf(t, vaultKind, "vaults", `{"spec":{"z":1}}`, `{"spec":{"z":1,"`+key+`":"b"}}`, append(documents, unknownVaults())...); !strings.Contains(got, "[y]") {
				t.Errorf("%s, %s: %q", key, what, got)
			}
		}
	}
	freed := vault("a", `{path: '.spec["a/"]', verb: example.com/y, excluded: true}, {path: '.spec["a/x"]', verb: example.com/w}`)
	for key, want := range map[string]string{"a/x": "[y]", "a/X": "[y]", "A/x": "[y]", "a/q": "[y]"} {
		if got := passingOf(t, vaultKind, "vaults", `{"spec":{"z":1}}`, `{"spec":{"z":1,"`+key+`":"b"}}`, unknownVaults(), freed); got != want {
			t.Errorf("%s beside a key of the same document: %q, want %q", key, got, want)
		}
	}
}

// TestC2_ASetWithAParameterHoldsWhereTheParameterIsNotKnown: a list without keys gives its verbs no parameters.
func TestC2_ASetWithAParameterHoldsWhereTheParameterIsNotKnown(t *testing.T) {
	const list = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, image: {type: string}}}}"
	template := runner("{type: object, " + withKey + ", properties: {spec: {type: object, " + keepUnknown + ", properties: {containers: " + list + "}}}}")
	set := "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: x}\nspec: {uncoveredPermissions: ['granular:image(web)'], resources: [{apiGroups: [example.com], resources: [runners]}]}\n"
	got := passingOf(t, runnerKind, "runners", `{"spec":{"template":{"spec":{"x":1}}}}`, `{"spec":{"template":{"spec":{"x":1,"initContainers":[{"name":"web","image":"a"}]}}}}`, template, set)
	if got == "" {
		t.Error("no barrier")
	}
}
