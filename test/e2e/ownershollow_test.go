//go:build integration

package e2e

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// TestD8_AnEmptyAppliedContainerIsRemovedWithAnotherVersion: an apply goes through each version that has an entry, and API servers keep no empty
// labels when a webhook converts an object. So after the first write in another version, an applier of empty labels deletes the labels
// without an owner.
func TestD8_AnEmptyAppliedContainerIsRemovedWithAnotherVersion(t *testing.T) {
	s := start(t)
	vault := []string{"vaults"}
	grant(t, s, "vault-painter", rule("names.example.com", vault, "get", "granular", "granular:example.com/color"))
	serveVaults(t, s, barred)
	v1 := &thing{s, "names.example.com/v1", "vaults", "Vault", "empty-labels"}
	v2 := v1.in("names.example.com/v2")
	eventually(t, func() *corpus.Answer {
		return send(t, v2.admin(t), http.MethodPost, v2.collection(), "application/json", v2.document(t, `{"spec":{"color":"c"}}`), "fieldManager=creator")
	}, 201)
	apply := func() {
		expect(t, v2.apply(t, v2.admin(t), "argocd", `{"metadata":{"labels":{}},"spec":{}}`), 200)
	}
	expect(t, send(t, v2.admin(t), http.MethodPatch, v2.path(), merge, fields(t, `{"metadata":{"labels":{"tier":"a"}}}`), "fieldManager=strange"), 200)
	expect(t, v2.put(t, v2.admin(t), func(object map[string]any) { take(t, object, "strange", "f:metadata", "f:labels") }), 200)
	for range 3 {
		if apply(); !v2.has(t, "metadata", "labels", "tier") {
			t.Fatal("the applier deletes the label by itself")
		}
	}

	paint := func(object map[string]any) { must(t, unstructured.SetNestedField(object, "d", "spec", "color")) }
	other := &thing{s, "names.example.com/v1", "vaults", "Vault", "no-labels"}
	expect(t, send(t, other.admin(t), http.MethodPost, other.collection(), "application/json", other.document(t, `{"spec":{"color":"c"}}`)), 201)
	inForce(t, "the color may be changed", func() *corpus.Answer {
		return send(t, wire(t, s, "vault-painter"), http.MethodPatch, other.path(), merge, fields(t, `{"spec":{"color":"d"}}`), "dryRun=All")
	}, 200)
	refusedFor(t, v1.put(t, wire(t, s, "vault-painter"), paint), "granular:example.com/secret")
	if apply(); !v2.has(t, "metadata", "labels", "tier") {
		t.Error("the label is gone though the write was refused")
	}
	expect(t, v1.put(t, v1.admin(t), paint), 200)
	if apply(); v2.has(t, "metadata", "labels", "tier") {
		t.Error("the API server keeps the label: nothing has to be charged")
	}
}
