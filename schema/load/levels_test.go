package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
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
