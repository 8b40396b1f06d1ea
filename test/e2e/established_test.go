//go:build integration

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestC2_AConditionOfADefinitionTakesNoBarrierAway: kube-apiserver serves a definition with the condition Established False as long as its
// names are accepted, and a user with a granular verb may write that condition.
func TestC2_AConditionOfADefinitionTakesNoBarrierAway(t *testing.T) {
	s := startOwn(t, stack.Config{Topology: stack.REST})
	install(t, s)
	const group = "established.example.com"
	makeGadget(t, s, group)
	mustKubectl(t, s, "", "create", "configmap", "guarded", "--from-literal=schema=1", "--from-literal=set=1")
	grant(t, s, "updater."+group, rule("", []string{"configmaps"}, "update", "patch"), rule(group, []string{"gadgets"}, "update", "patch"))
	grant(t, s, "tamperer", rule("apiextensions.k8s.io", []string{"customresourcedefinitions/status"}, "granular", "granular:condition(Established)"))
	updater, tamperer := wire(t, s, "updater."+group), wire(t, s, "tamperer")

	write := func(path, body string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, updater, http.MethodPatch, path, merge, fields(t, body), "dryRun=All")
		}
	}
	const configMap = "/api/v1/namespaces/default/configmaps/guarded"
	gadget := "/apis/" + group + "/v1/namespaces/default/gadgets/one"
	bySet, bySchema := write(configMap, `{"metadata":{"labels":{"set":"2"}}}`), write(configMap, `{"data":{"schema":"2"}}`)
	byDefinition, free := write(gadget, `{"spec":{"size":2}}`), write(gadget, `{"spec":{"color":"red"}}`)
	put(t, s, uncoveredSet("established", "granular:labels", "", "configmaps"))
	put(t, s, immutability("established", `{path: '.data["schema"]', verb: example.com/schema, excluded: true}`))
	for _, barred := range []func() *corpus.Answer{bySet, bySchema, byDefinition} {
		eventually(t, barred, http.StatusForbidden)
	}
	expect(t, free(), http.StatusOK)

	for _, name := range []string{"uncoveredpermissionsets.fieldperm.dev", "permissionschemas.fieldperm.dev", "gadgets." + group} {
		t.Run(name, func(t *testing.T) {
			types := strings.Fields(mustKubectl(t, s, "", "get", "customresourcedefinition", name, "-o", "jsonpath={.status.conditions[*].type}"))
			var body []map[string]any
			for i, of := range types {
				if of == "Established" {
					body = []map[string]any{{"op": "replace", "path": fmt.Sprintf("/status/conditions/%d/status", i), "value": "False"}}
				}
			}
			codes := map[string]map[int]int{"set": {}, "schema": {}, "definition": {}, "free": {}, "tampered": {}}
			for deadline := time.Now().Add(4 * time.Second); time.Now().Before(deadline); {
				codes["tampered"][send(t, tamperer, http.MethodPatch, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+name+"/status", "application/json-patch+json", body).Code]++
				codes["set"][bySet().Code]++
				codes["schema"][bySchema().Code]++
				codes["definition"][byDefinition().Code]++
				codes["free"][free().Code]++
			}
			t.Logf("answers by code: %v", codes)
			if codes["tampered"][http.StatusOK] < 10 {
				t.Errorf("the condition was written %v times: nothing is shown", codes["tampered"])
			}
			for what, want := range map[string]int{"set": http.StatusForbidden, "schema": http.StatusForbidden, "definition": http.StatusForbidden, "free": http.StatusOK} {
				if len(codes[what]) != 1 || codes[what][want] == 0 {
					t.Errorf("%s: answered %v, want %d alone", what, codes[what], want)
				}
			}
		})
	}
}

// TestC2_TheAcceptedNamesOfADefinitionAreTheServers: kube-apiserver takes the kind of objects and their storage path from the accepted
// names. With other names the objects of one definition would be under the barriers of another one.
func TestC2_TheAcceptedNamesOfADefinitionAreTheServers(t *testing.T) {
	s := start(t)
	install(t, s)
	const definitions = "customresourcedefinitions/status"
	grant(t, s, "renamer", rule("apiextensions.k8s.io", []string{definitions}, "get", "update", "patch"))
	grant(t, s, "whole", rule("apiextensions.k8s.io", []string{definitions}, "granular", "granular:*"))
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/permissionschemas.fieldperm.dev/status"
	for _, user := range []string{"renamer", "whole"} {
		c := wire(t, s, user)
		answer := inForce(t, user, func() *corpus.Answer {
			return send(t, c, http.MethodPatch, path, merge, fields(t, `{"status":{"acceptedNames":{"kind":"Other"}}}`), "dryRun=All")
		}, http.StatusForbidden)
		if !strings.Contains(answer.Status.Message, "granular:acceptedNames") {
			t.Errorf("%s: message %q does not name the verb", user, answer.Status.Message)
		}
		expect(t, send(t, c, http.MethodPatch, path, merge, fields(t, `{"status":{"storedVersions":["v1alpha1"]}}`), "dryRun=All"), http.StatusOK)
	}
}
