package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// passing returns the verbs that pass each barrier of a change, of schemas and of sets, sorted and without their prefixes.
func passing(t *testing.T, s *schema.Schema, kind runtimeschema.GroupVersionKind, sets schema.VerbSet, old, new string) string {
	t.Helper()
	var out []string
	for _, r := range behindBarriers(t, s, kind, sets, old, new) {
		out = append(out, strings.NewReplacer("granular:", "", "example.com/", "").Replace(fmt.Sprint(r.Candidates())))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// ofVersion limits a PermissionSchema to one version.
func ofVersion(version, document string) string {
	return strings.Replace(document, "spec: {", "spec: {versions: ["+version+"], ", 1)
}

// TestC3_ABarrierOnAllKeysHoldsForAKeyWithAVerbInAllVersions, whatever documents say of the key, and whatever their names are.
func TestC3_ABarrierOnAllKeysHoldsForAKeyWithAVerbInAllVersions(t *testing.T) {
	const (
		all    = `{path: '.spec.items[*].secret', verb: example.com/y, excluded: true}`
		key    = `{path: '.spec.items["x"].secret', verb: example.com/w}`
		barred = `{path: '.spec.items["x"].secret', verb: example.com/z, excluded: true}`
	)
	document := func(name string, entries ...string) string {
		return permissionSchema(name, "example.com", "Vault", strings.Join(entries, ", "))
	}
	const old, changed = `{"spec":{"other":"a"}}`, `{"spec":{"other":"b"}}`
	for name, c := range map[string]struct {
		// documents are named in both orders. want is what a change of the key needs.
		documents func(one, other string) []string
		want      string
	}{
		"another document bars the key": {func(one, other string) []string {
			return []string{ofVersion("v2", document(one, all, key)), document(other, barred)}
		}, "[y] [z]"},
		"another document of the version bars the key": {func(one, other string) []string {
			return []string{ofVersion("v2", document(one, all, key)), ofVersion("v2", document(other, barred))}
		}, "[y] [z]"},
		"a third document bars all keys": {func(one, other string) []string {
			return []string{ofVersion("v2", document(one, all, key)), document(other, key), document("c", strings.ReplaceAll(all, "/y", "/v"))}
		}, "[v] [y]"},
		"no document bars the key": {func(one, other string) []string {
			return []string{ofVersion("v2", document(one, all, key)), document(other, key)}
		}, "[y]"},
		"the barrier on all keys is of the other document": {func(one, other string) []string {
			return []string{ofVersion("v2", document(one, key)), document(other, all, barred)}
		}, "[y] [z]"},
		"the other document has no barrier on the key": {func(one, other string) []string {
			return []string{ofVersion("v2", document(one, key)), document(other, all)}
		}, "[y]"},
	} {
		inBothOrders(t, name, func(t *testing.T, one, other string) {
			s := compileWorkloads(t, append([]string{vaults("v1", "v2")}, c.documents(one, other)...)...)
			for _, version := range []string{"v1", "v2"} {
				kind := gvk("example.com", version, "Vault")
				if got := passing(t, s, kind, nil, old, changed); got != "" {
					t.Errorf("%s: another field needs %q", version, got)
				}
				if got := passing(t, s, kind, nil, `{"spec":{"items":{"x":{"secret":"a"}}}}`, `{"spec":{"items":{"x":{"secret":"b"}}}}`); got != c.want {
					t.Errorf("%s: the key needs %q, want %q", version, got, c.want)
				}
				if got := passing(t, s, kind, nil, `{"spec":{"items":{"n":{"secret":"a"}}}}`, `{"spec":{"items":{"n":{"secret":"b"}}}}`); got == "" {
					t.Errorf("%s: another key needs nothing", version)
				}
			}
		})
	}
}

// TestC3_AReplacedEntryCountsInNoVersion: of two documents about one version the later one counts, in the other versions too.
func TestC3_AReplacedEntryCountsInNoVersion(t *testing.T) {
	entry := func(verb string) string { return `{path: '.spec.items["x"].secret', verb: example.com/` + verb + `}` }
	s := compileWorkloads(t, vaults("v1", "v2"), ofVersion("v2", permissionSchema("a", "example.com", "Vault", entry("v"))), ofVersion("v2", permissionSchema("b", "example.com", "Vault", entry("w"))))
	for _, version := range []string{"v1", "v2"} {
		if got := verbsAt(t, s, gvk("example.com", version, "Vault"), `.spec.items["x"].secret`); got != "example.com/w" {
			t.Errorf("%s: %q", version, got)
		}
	}
}

// TestC3_ADocumentSaysNothingAboutAFieldOfAnotherType: it may be another field, which its barrier on all keys guards.
func TestC3_ADocumentSaysNothingAboutAFieldOfAnotherType(t *testing.T) {
	definition := vaults("v1", "v2")
	i := strings.LastIndex(definition, "secret: {type: string}, deep")
	definition = definition[:i] + strings.Replace(definition[i:], "string", "integer", 1)
	s := compileWorkloads(t, definition, ofVersion("v2", permissionSchema("a", "example.com", "Vault", `{path: '.spec.items[*].secret', verb: example.com/y, excluded: true}, {path: '.spec.items["x"].secret', verb: example.com/v}`)),
		permissionSchema("b", "example.com", "Vault", `{path: '.spec.items["x"].secret', verb: example.com/w}`))
	for version, want := range map[string]string{"v1": "example.com/y example.com/w EXAMPLE.COM/Y", "v2": "example.com/y example.com/w EXAMPLE.COM/Y"} {
		if got := verbsAt(t, s, gvk("example.com", version, "Vault"), `.spec.items["x"].secret`); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}
