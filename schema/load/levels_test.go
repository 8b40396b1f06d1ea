package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// TestC2_ABarrierHoldsBesideAnEntryWithoutAVerb: the later document gives the field a parameter source alone.
func TestC2_ABarrierHoldsBesideAnEntryWithoutAVerb(t *testing.T) {
	inBothOrders(t, "a parameter source", func(t *testing.T, one, other string) {
		s := compileWorkloads(t, vaults("v1"), permissionSchema(one, "example.com", "Vault", "{path: .spec.items, verb: example.com/y, excluded: true}"),
			permissionSchema(other, "example.com", "Vault", "{path: .spec.items, parameterSource: item}"))
		if got := passing(t, s, gvk("example.com", "v1", "Vault"), nil, `{"spec":{}}`, `{"spec":{"items":{"x":{"secret":"a"}}}}`); got != "[y]" {
			t.Errorf("needs %q", got)
		}
	})
}

// besideOf compiles a vault with a barrier and, in a later document, with other verbs.
func besideOf(t *testing.T, barrier, verbs string) *schema.Schema {
	t.Helper()
	return compileWorkloads(t, vaults("v1"), permissionSchema("a", "example.com", "Vault", barrier), permissionSchema("b", "example.com", "Vault", verbs))
}

// TestC2_WhatPassesABarrierBesideAField: its verb does, and so do the verbs below the field. No other one does, and the verbs of the field cover the
// change all the same.
func TestC2_WhatPassesABarrierBesideAField(t *testing.T) {
	const (
		barred = "{path: .spec.items, verb: example.com/y, excluded: true}"
		other  = "{path: .spec.items, verb: example.com/v}"
		below  = ", {path: '.spec.items[*].secret', verb: example.com/s}"
	)
	for name, c := range map[string]struct {
		barrier, verbs, old, new string
		sets                     []string
		want                     string
	}{
		"the field":                     {barred, other, `{}`, `{"items":{}}`, nil, "[* specification v] barred [y]"},
		"a part of it":                  {barred, other, `{}`, `{"items":{"x":{"secret":"a"}}}`, nil, "[* specification v] barred [y]"},
		"a part with a verb":            {barred, other + below, `{"items":{"x":{"secret":"a"}}}`, `{"items":{"x":{"secret":"b"}}}`, nil, "[* specification v s] barred [y s]"},
		"a part with a verb, and a set": {barred, other + below, `{"items":{"x":{"secret":"a"}}}`, `{"items":{"x":{"secret":"b"}}}`, []string{"granular:example.com/v"}, "barred [v s] barred [y s]"},
		"another field":                 {barred, other, `{}`, `{"other":"a"}`, nil, "[* specification]"},
		"a condition that is false, and a set": {`{path: .spec.secret, verb: example.com/y, excludedWhen: "false"}`, "{path: .spec.secret, verb: example.com/v}", `{}`, `{"secret":"a"}`,
			[]string{"granular:example.com/y"}, "[* specification v] barred [y]"},
		"a condition that is false, and a set with a parameter": {`{path: .spec.secret, verb: example.com/y, parameterSource: s, parameterizedBy: s, excludedWhen: "false"}`, "{path: .spec.secret, verb: example.com/v, parameterSource: s}", `{}`, `{"secret":"a"}`,
			[]string{"granular:example.com/y(a)"}, "[* specification v] barred [y(a)]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := needs(t, besideOf(t, c.barrier, c.verbs), c.sets, `{"spec":`+c.old+`}`, `{"spec":`+c.new+`}`)
			slices.Sort(got)
			if got := strings.Join(slices.Compact(got), " "); got != c.want {
				t.Errorf("needs %q, want %q", got, c.want)
			}
		})
	}
}

// TestC2_ABarrierBesideAFieldHoldsInAValueThatChangesAsAWhole: the verbs of the value do not meet it.
func TestC2_ABarrierBesideAFieldHoldsInAValueThatChangesAsAWhole(t *testing.T) {
	definition := strings.Replace(vaults("v1"), "items: {type: object, ", "items: {type: object, x-kubernetes-map-type: atomic, ", 1)
	s := compileWorkloads(t, definition, permissionSchema("a", "example.com", "Vault", "{path: '.spec.items[*].secret', verb: example.com/y, excluded: true}"),
		permissionSchema("b", "example.com", "Vault", "{path: '.spec.items[*].secret', verb: example.com/v}, {path: .spec.items, verb: example.com/items}"))
	got := needs(t, s, nil, `{"spec":{"items":{"x":{"secret":"a"}}}}`, `{"spec":{"items":{"x":{"secret":"b"}}}}`)
	if !slices.Contains(got, "barred [y]") {
		t.Errorf("needs %q", got)
	}
}

// TestC2_BarriersBesideSiblingsAreTheirOwn: of many barriers at one place, each sibling has those above and its own.
func TestC2_BarriersBesideSiblingsAreTheirOwn(t *testing.T) {
	documents := []string{vaults("v1")}
	for _, name := range []string{"a", "b", "c"} {
		documents = append(documents, permissionSchema(name, "example.com", "Vault", "{path: '.spec.items[*]', verb: example.com/"+name+", excluded: true}"))
	}
	const fields = "{path: '.spec.items[*].secret', verb: example.com/%s%s}, {path: '.spec.items[*].deep', verb: example.com/%s%s}"
	documents = append(documents, permissionSchema("d", "example.com", "Vault", fmt.Sprintf(fields, "secret", ", excluded: true", "deep", ", excluded: true")),
		permissionSchema("e", "example.com", "Vault", "{path: '.spec.items[*]', verb: example.com/v}, "+fmt.Sprintf(fields, "v", "", "v", "")))
	got := passing(t, compileWorkloads(t, documents...), vaultKind, nil, `{"spec":{"items":{"x":{}}}}`, `{"spec":{"items":{"x":{"deep":{"secret":"a"},"secret":"a"}}}}`)
	if strings.Count(got, "[deep]") != 1 || strings.Count(got, "[secret]") != 1 {
		t.Errorf("needs %q", got)
	}
}

// needs returns the verbs that meet each demand of a change of a vault, without prefixes.
func needs(t *testing.T, s *schema.Schema, sets []string, old, new string) []string {
	t.Helper()
	var out []string
	for _, r := range demandsOf(t, s, vaultKind, barriersOf(t, sets...), old, new) {
		text := strings.NewReplacer("granular:", "", "example.com/", "").Replace(fmt.Sprint(r.Candidates()))
		if r.Barred() {
			text = "barred " + text
		}
		out = append(out, text)
	}
	return out
}

// TestC2_AVerbOfAKeyLeavesBarriersFurtherBelowAllKeys, below another map.
func TestC2_AVerbOfAKeyLeavesBarriersFurtherBelowAllKeys(t *testing.T) {
	definition := strings.Replace(vaults("v1"), "deep: {type: object, properties: {secret: {type: string}}}", "deep: {type: object, additionalProperties: {type: string}}", 1)
	s := compileWorkloads(t, definition, permissionSchema("a", "example.com", "Vault", `{path: '.spec.items[*].deep[*]', verb: example.com/y, excluded: true}`),
		permissionSchema("b", "example.com", "Vault", `{path: '.spec.items["x"].deep[*]', verb: example.com/w}`))
	if got := passing(t, s, vaultKind, nil, `{"spec":{"items":{"x":{"deep":{"a":"a"}}}}}`, `{"spec":{"items":{"x":{"deep":{"a":"b"}}}}}`); got != "[y]" {
		t.Errorf("needs %q", got)
	}
}

// TestC3_ABarrierAtAFieldOfAnotherTypeHasNoParameter: it may be another field, so its value is not that of the parameter, and is none for other verbs.
func TestC3_ABarrierAtAFieldOfAnotherTypeHasNoParameter(t *testing.T) {
	v := versions{v1: named, v1beta1: strings.Replace(named, "secret: {type: string}", "secret: {type: integer}", 1), metadata: vouched, top: byWebhook}
	s := compileBox(t, v.String(), guardOf("Box", "v1", "{path: .spec.secret, verb: secret, parameterSource: s, parameterizedBy: s, excluded: true}"))
	_, n := placeIn(t, s, boxOf("v1beta1"), ".spec.secret")
	if got := verbsAt(t, s, boxOf("v1beta1"), ".spec.secret"); got != "SECRET" || n.Emits() != "" {
		t.Errorf("the field has %q, and emits %q", got, n.Emits())
	}
	s = compileBox(t, v.String(), guardOf("Box", "v1", "{path: .spec.secret, verb: secret, parameterSource: s, parameterizedBy: s, excluded: true}"), guardOf("Box", "v1beta1", "{path: .spec.secret, verb: other, parameterSource: s}"))
	if got := verbsAt(t, s, boxOf("v1beta1"), ".spec.secret"); got != "other SECRET" {
		t.Errorf("beside another verb, the field has %q", got)
	}
}

// TestC3_ABarrierHoldsWhereAListHasNoKeys, without the parameter that the keys emit in the other version.
func TestC3_ABarrierHoldsWhereAListHasNoKeys(t *testing.T) {
	list := func(keys string) string {
		return "{type: object, properties: {size: {type: integer}, list: {type: array" + keys + ", items: {type: object, required: [a], properties: {a: {type: string}, c: {type: string}}}}}}"
	}
	v := versions{v1: list(", x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a]"), v1beta1: list(""), metadata: vouched, top: byWebhook}
	s := compileBox(t, v.String(), guardOf("Box", "v1", "{path: '.spec.list[*].a', verb: key, parameterSource: s}, {path: '.spec.list[*].c', verb: c, parameterizedBy: s, excluded: true}"))
	if got := verbsAt(t, s, boxOf("v1beta1"), ".spec.list[*].c"); got != "C" {
		t.Errorf("the field has %q", got)
	}
}

// TestC3_AConversionByNamePrunesAField: a version that has every field of the stored objects needs nothing for those that others declare.
func TestC3_AConversionByNamePrunesAField(t *testing.T) {
	v := versions{v1: "{type: object, properties: {size: {type: integer}}}", v1beta1: named}
	s := compileBox(t, v.String(), guardOf("Box", "v1beta1", "{path: .spec.secret, verb: secret, excluded: true}"))
	if k, err := s.Kind(boxOf("v1")); err != nil || k.Lossy() || len(k.HiddenBarriers(nil)) > 0 {
		t.Errorf("v1 hides barriers, or fails: %v", err)
	}
}

// TestC3_TheRankOfADocumentCountsInOtherVersions: an administrator gives the field a verb in v1, and the author one in v1beta1.
func TestC3_TheRankOfADocumentCountsInOtherVersions(t *testing.T) {
	v := versions{v1: named, v1beta1: named, metadata: `, annotations: {fieldperm.dev/permission-verbs: '{"v1":[],"v1beta1":[{"path":".spec.secret","verb":"other"}]}'}`}
	s := compileBox(t, v.String(), guardOf("Box", "v1", "{path: .spec.secret, verb: secret}"))
	if got := secretChains(t, s, "v1beta1", "a", "b"); !slices.Equal(got, []string{"[* secret]"}) {
		t.Errorf("got %q", got)
	}
}

// TestTraced_AJointBarrierNamesItsDocuments, so that explain shows both.
func TestTraced_AJointBarrierNamesItsDocuments(t *testing.T) {
	documents := documentsOf(t, vaults("v1"), permissionSchema("a", "example.com", "Vault", "{path: .spec.secret, verb: example.com/y, excluded: true}"), permissionSchema("b", "example.com", "Vault", "{path: .spec.secret, verb: example.com/y}"))
	documents.Topologies[0], documents.Traced = workloadKinds(t), true
	_, n := placeIn(t, compileDocuments(t, documents), vaultKind, ".spec.secret")
	if p := n.Permissions(); len(p) != 1 || len(p[0].Origins()) != 2 {
		t.Errorf("%d permissions", len(p))
	}
}

// compileFaulty compiles a box whose documents may have faults.
func compileFaulty(t *testing.T, texts ...string) *schema.Schema {
	t.Helper()
	docs := compile.Documents{}
	for i, text := range texts {
		d, errs := Decode(fmt.Sprintf("d%d.yaml", i), []byte(text))
		noErrors(t, errs)
		docs = docs.Append(d)
	}
	s, _ := compile.Compile(docs)
	return s
}

// TestC3_ABarrierOfVersionsThatDoNotExistHolds in those that do.
func TestC3_ABarrierOfVersionsThatDoNotExistHolds(t *testing.T) {
	s := compileFaulty(t, versions{v1: named, v1beta1: named}.String(), guardOf("Box", "v2", "{path: .spec.secret, verb: secret, excluded: true}"))
	if got := secretChains(t, s, "v1", "a", "b"); !slices.Equal(got, []string{"barred [secret]"}) {
		t.Errorf("got %q", got)
	}
}

// TestC2_AParameterThatIsFormedInAnotherWayIsAnother: each version has a document of its own about the same value.
func TestC2_AParameterThatIsFormedInAnotherWayIsAnother(t *testing.T) {
	const (
		named = `{type: object, properties: {size: {type: integer}, list: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b], items: {type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}, c: {type: string}}}}}}`
		label = "{path: .metadata.labels, verb: labels, parameterSource: s}, {path: '.metadata.labels[*]', verb: label, parameterizedBy: s%s}"
		item  = "{path: '.spec.list[*].a', verb: key, parameterSource: s}, {path: '.spec.list[*].c', verb: c, parameterizedBy: s}"
	)
	document := func(version, entries string) string {
		return strings.Replace(guardOf("Box", version, entries), "name: x", "name: of-"+version, 1)
	}
	labels := func(value string) string { return `{"metadata":{"labels":{"example.com/a":"` + value + `"}}}` }
	list := func(value string) string { return `{"spec":{"list":[{"a":"x","b":"y","c":"` + value + `"}]}}` }
	for name, c := range map[string]struct {
		v1, v1beta1 string
		object      func(string) string
		set         string
	}{
		"a prefix":           {fmt.Sprintf(label, ", parameterTreatment: slash-delimited-prefix"), fmt.Sprintf(label, ""), labels, "granular:label(example.com)"},
		"another expression": {fmt.Sprintf(label, `, parameterExpression: "self + 'x'"`), fmt.Sprintf(label, `, parameterExpression: "self + 'y'"`), labels, "granular:label(example.com/ax)"},
		"a verb of items":    {item, "{path: '.spec.list[*].c', verb: d}", list, "granular:c(x)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileBox(t, versions{v1: named, v1beta1: named}.String(), document("v1", c.v1), document("v1beta1", c.v1beta1))
			if got := barsOn(t, s, boxOf("v1beta1"), schema.ResourceRef{}, c.object("a"), c.object("b"), c.set); !slices.Equal(got, []string{"[" + c.set + "]"}) {
				t.Errorf("got %q", got)
			}
		})
	}
}
