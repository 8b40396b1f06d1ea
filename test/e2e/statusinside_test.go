//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// vials is a definition with the version v1, and v1beta1 with the given subresources and fields of the status.
func vials(group, subresources, fields string) string {
	version := func(name, storage, subresources, fields string) string {
		return "  - {name: " + name + ", served: true, storage: " + storage + ", " + subresources +
			"schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}, status: {type: object, properties: {" + fields + "}}}}}}\n"
	}
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: vials." + group + "}\nspec:\n" +
		"  group: " + group + "\n  scope: Namespaced\n  names: {kind: Vial, plural: vials}\n  versions:\n" +
		version("v1", "true", "subresources: {status: {}}, ", "phase: {type: string}") + version("v1beta1", "false", subresources, fields)
}

// makeVial installs a definition of vials, and stores one with a size and a phase.
func makeVial(t *testing.T, s *stack.Stack, group, subresources, fields string) *thing {
	t.Helper()
	remove(t, s, "customresourcedefinition", "vials."+group)
	apply(t, s, vials(group, subresources, fields))
	established(t, s, "vials."+group)
	o := &thing{s, group + "/v1", "vials", "Vial", "one"}
	eventually(t, func() *corpus.Answer {
		return send(t, o.admin(t), http.MethodPost, o.collection(), "application/json", o.document(t, `{"spec":{"size":1}}`))
	}, 201)
	eventually(t, func() *corpus.Answer { return o.patch(t, o.admin(t), `{"status":{"phase":"good"}}`, "status") }, 200)
	return o
}

// TestC2_D11_ASetAboutTheStatusHoldsWhereTheObjectStoresIt: a version without the subresource status stores the status in a write of the
// object, and a lossy version stores its part of the status in place of the whole one. The API server stores the status of a new Node.
func TestC2_D11_ASetAboutTheStatusHoldsWhereTheObjectStoresIt(t *testing.T) {
	const status, phase = "subresources: {status: {}}, ", "phase: {type: string}"
	s := start(t)
	install(t, s)
	for _, group := range []string{"inside.example.com", "later.example.com", "lossy.example.com"} {
		grant(t, s, "updater."+group, rule(group, []string{"vials"}, "get", "create", "update", "patch"))
	}
	grant(t, s, "verbed", rule("inside.example.com", []string{"vials"}, "get", "update", "patch", "granular:status"))
	grant(t, s, "node-maker", rule("", []string{"nodes"}, "create"))
	inside, later := makeVial(t, s, "inside.example.com", "", phase), makeVial(t, s, "later.example.com", status, phase)
	lossy := makeVial(t, s, "lossy.example.com", status, "")
	remove(t, s, "uncoveredpermissionset", "statuses")
	apply(t, s, uncoveredSet("statuses", "granular:status", "*", "'*/status'"))
	as := func(o *thing) *corpus.Wire {
		return wire(t, s, "updater."+strings.TrimSuffix(o.apiVersion, "/v1"))
	}
	old := func(o *thing) *thing { return o.in(strings.Replace(o.apiVersion, "/v1", "/v1beta1", 1)) }
	// The value is refused, and not only its owner, of whom a set about the status is in force everywhere.
	evil := func(o *thing) func() *corpus.Answer {
		return func() *corpus.Answer {
			answer := send(t, as(o), http.MethodPatch, old(o).path(), merge, fields(t, `{"status":{"phase":"EVIL"}}`), "dryRun=All")
			if strings.Contains(answer.Status.Message, "its field managers") {
				answer.Code = 0
			}
			return answer
		}
	}
	inForce(t, "the set in the version without the subresource", evil(inside), 403)

	t.Run("AVersionWithoutTheSubresource", func(t *testing.T) {
		b := old(inside)
		refusedFor(t, b.patch(t, as(inside), `{"status":{"phase":"EVIL"}}`), "granular:status")
		refusedFor(t, b.patch(t, as(inside), `{"status":null}`), "granular:status")
		refusedFor(t, b.apply(t, as(inside), "argo", `{"status":{"phase":"EVIL"}}`), "granular:status")
		other := *b
		other.name = "two"
		refusedFor(t, send(t, as(inside), http.MethodPost, other.collection(), "application/json", other.document(t, `{"status":{"phase":"EVIL"}}`)), "granular:status")
		expect(t, b.patch(t, as(inside), `{"metadata":{"labels":{"a":"b"}}}`), 200)
		expect(t, b.patch(t, as(inside), `{"spec":{"size":2}}`), 200)
		expect(t, b.patch(t, wire(t, s, "verbed"), `{"status":{"phase":"fine"}}`), 200)
		expect(t, inside.patch(t, as(inside), `{"spec":{"size":3}}`), 200)
	})
	t.Run("AVersionThatDropsTheSubresource", func(t *testing.T) {
		expect(t, evil(later)(), 0) // The API server keeps the stored status.
		apply(t, s, vials("later.example.com", "", phase))
		inForce(t, "the set after the change of the definition", evil(later), 403)
		expect(t, old(later).patch(t, as(later), `{"spec":{"size":2}}`), 200)
	})
	t.Run("ALossyVersion", func(t *testing.T) {
		refusedFor(t, old(lossy).patch(t, as(lossy), `{"spec":{"size":2}}`), "granular:status")
		expect(t, lossy.patch(t, as(lossy), `{"spec":{"size":2}}`), 200)
		// So the refused write would remove what the version does not have.
		expect(t, old(lossy).patch(t, lossy.admin(t), `{"spec":{"size":3}}`), 200)
		if lossy.has(t, "status", "phase") {
			t.Error("the phase is still there: the write through the lossy version need not be refused")
		}
	})
	t.Run("ANewNode", func(t *testing.T) {
		node := func(rest string) *corpus.Answer {
			return send(t, wire(t, s, "node-maker"), http.MethodPost, "/api/v1/nodes", "application/json", fields(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"made"}`+rest+`}`), "dryRun=All")
		}
		expect(t, node(""), 201)
		refusedFor(t, node(`,"status":{"addresses":[{"type":"Hostname","address":"made"}]}`), "granular:status")
	})
}
