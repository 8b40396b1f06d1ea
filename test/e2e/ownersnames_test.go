//go:build integration

package e2e

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// vaultNames is a conversion without any loss.
var vaultNames = renames{"secret": "hidden"}

// barred is the addition to the verb of a secret that makes it a barrier.
const barred = `,"excluded":true`

// vaults is a definition in which only the first version has a verb for the secret. more is added to the entry of that verb.
func vaults(conversion, more string) string {
	version := func(name, storage, secret string) string {
		return "  - {name: " + name + ", served: true, storage: " + storage + ", schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + secret + ": {type: string}, color: {type: string}, note: {type: string}}}}}}}\n"
	}
	const color = `{"path":".spec.color","verb":"example.com/color"},{"path":".spec.note","verb":"example.com/color"}`
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: vaults.names.example.com\n  annotations:\n    fieldperm.dev/lossless-conversion: 'true'\n" +
		`    fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.secret","verb":"example.com/secret"` + more + `},` + color + `],"v2":[` + color + `]}'` + "\n" +
		"spec:\n  group: names.example.com\n  scope: Namespaced\n  names: {kind: Vault, plural: vaults}\n" +
		"  conversion: " + conversion + "\n" +
		"  versions:\n" + version("v1", "true", "secret") + version("v2", "false", "hidden")
}

// serveVaults makes the API server serve vaults until the test ends.
func serveVaults(t *testing.T, s *stack.Stack, more string) {
	t.Helper()
	conversion := vaultNames.serve(t)
	remove(t, s, "customresourcedefinition", "vaults.names.example.com")
	put(t, s, vaults(conversion, more))
	established(t, s, "vaults.names.example.com")
}

// TestD8_C2_OwnersByTheNameOfAnotherVersion: an entry of another version has the name that this version uses for a guarded field. The path
// does not exist in the version of the request. Its gain and its loss need the verb of the barrier.
func TestD8_C2_OwnersByTheNameOfAnotherVersion(t *testing.T) {
	s := start(t)
	vault := []string{"vaults"}
	grant(t, s, "vault-updater", rule("names.example.com", vault, "get", "update", "patch"))
	grant(t, s, "vault-painter", rule("names.example.com", vault, "get", "granular", "granular:example.com/color"))
	serveVaults(t, s, barred)
	o := &thing{s, "names.example.com/v1", "vaults", "Vault", "kept-secret"}
	v2 := o.in("names.example.com/v2")
	eventually(t, func() *corpus.Answer {
		return send(t, o.admin(t), http.MethodPost, o.collection(), "application/json", o.document(t, `{"spec":{"secret":"s","color":"c"}}`), "fieldManager=creator")
	}, 201)
	inForce(t, "the secret may not be removed", func() *corpus.Answer {
		return send(t, wire(t, s, "vault-updater"), http.MethodPatch, o.path(), merge, fields(t, `{"spec":{"secret":null}}`), "dryRun=All")
	}, 403)

	victim := func(t *testing.T) *corpus.Answer { return v2.apply(t, o.admin(t), "argocd", `{"spec":{"color":"c"}}`) }
	expect(t, victim(t), 200)
	expect(t, o.put(t, o.admin(t), func(object map[string]any) { take(t, object, "creator", "f:spec", "f:secret") }), 200)
	steal := &theft{
		steps: []request{func(t *testing.T, thief *corpus.Wire) *corpus.Answer {
			return o.put(t, thief, func(object map[string]any) { give(t, object, "argocd", "f:spec", "f:hidden") })
		}},
		needs: "granular:example.com/secret", victim: victim,
		stays: func(t *testing.T) bool { return o.has(t, "spec", "secret") },
	}
	steal.fails(t, s, "vault-updater")

	// A change of the color does not remove the owner. The barrier refuses it, and the granular verbs do: the API server returns one of the
	// two messages.
	expect(t, v2.apply(t, o.admin(t), "security", `{"spec":{"hidden":"s","color":"c"}}`), 200)
	for user, names := range map[string]string{"vault-painter": `"security" in names.example.com/v2`, "vault-updater": "granular:example.com/secret"} {
		refusedFor(t, o.put(t, wire(t, s, user), func(object map[string]any) {
			must(t, unstructured.SetNestedField(object, "d", "spec", "color"))
			take(t, object, "security", "f:spec", "f:hidden")
		}), names)
	}
	// An apply of the owner without the secret in its manifest removes the secret.
	expect(t, v2.apply(t, o.admin(t), "security", `{"spec":{}}`), 200)
	if o.has(t, "spec", "secret") {
		t.Error("the owner of the secret does not remove it")
	}
}

// TestD8_OwnersByTheNameOfAnotherVersionStayBesideAChange: an entry of another version has the name that this version uses for a field
// without barrier. A change of a neighbor with the same name in both versions does not remove the owner.
func TestD8_OwnersByTheNameOfAnotherVersionStayBesideAChange(t *testing.T) {
	s := start(t)
	vault := []string{"vaults"}
	grant(t, s, "vault-painter", rule("names.example.com", vault, "get", "granular", "granular:example.com/color", "granular:annotation(k)"))
	grant(t, s, "vault-owner", rule("names.example.com", vault, "get", "granular", "granular:*"))
	serveVaults(t, s, "")
	o := &thing{s, "names.example.com/v1", "vaults", "Vault", "kept-beside"}
	v2 := o.in("names.example.com/v2")
	flux := func() *corpus.Answer { return v2.apply(t, v2.admin(t), "flux", `{"spec":{"color":"c","note":"n"}}`) }
	eventually(t, flux, 201)
	expect(t, v2.patch(t, v2.admin(t), `{"spec":{"hidden":"s"}}`), 200)
	victim := func(t *testing.T) *corpus.Answer {
		return v2.apply(t, v2.admin(t), "argocd", `{"metadata":{"annotations":{"k":"v"}}}`)
	}
	expect(t, victim(t), 200)
	inForce(t, "the color may be changed", func() *corpus.Answer {
		return send(t, wire(t, s, "vault-painter"), http.MethodPatch, v2.path(), merge, fields(t, `{"spec":{"color":"d"}}`), "dryRun=All")
	}, 200)
	inForce(t, "no barrier is there", func() *corpus.Answer {
		return send(t, wire(t, s, "vault-owner"), http.MethodPatch, o.path(), merge, fields(t, `{"spec":{"secret":null}}`), "dryRun=All")
	}, 200)
	refusedFor(t, v2.patch(t, wire(t, s, "vault-painter"), `{"spec":{"hidden":null}}`), "granular:*")
	steal := &theft{
		first: func(t *testing.T, as *corpus.Wire) *corpus.Answer {
			expect(t, flux(), 200)
			return v2.apply(t, as, "argocd", `{"metadata":{"annotations":{"k":"v"}},"spec":{"color":"b"}}`)
		},
		steps: []request{func(t *testing.T, as *corpus.Wire) *corpus.Answer {
			return o.put(t, as, func(object map[string]any) {
				take(t, object, "patcher", "f:spec") // Without a field in it, that path would mean the owner of the struct.
				unstructured.RemoveNestedField(object, "spec", "note")
			})
		}},
		needs: "granular:*", holder: "vault-owner", victim: victim,
		stays: func(t *testing.T) bool { return v2.has(t, "spec", "hidden") },
	}
	steal.fails(t, s, "vault-painter")
}
