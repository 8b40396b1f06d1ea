//go:build integration

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// gadgets is a definition with a barrier on .spec.size of its kind.
func gadgets(group string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: gadgets." + group + "\n" +
		`  annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.size","verb":"example.com/size","excluded":true},{"path":".spec.color","verb":"example.com/color"}]}'}` + "\n" +
		"spec: {group: " + group + ", scope: Namespaced, names: {plural: gadgets, kind: Gadget}, versions: [{name: v1, served: true, storage: true, " +
		"schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}}}}}]}\n"
}

// TestC2_W2_AClaimToBeBuiltInTakesNoBarrierAway: a user with a granular verb may write the label by which kube-apiserver recognizes its own
// APIServices, and kube-apiserver does not restore it.
func TestC2_W2_AClaimToBeBuiltInTakesNoBarrierAway(t *testing.T) {
	s := startOwn(t, stack.Config{})
	for _, group := range []string{"before.example.com", "after.example.com"} {
		grant(t, s, "updater."+group, rule(group, []string{"gadgets"}, "update", "patch"))
		grant(t, s, "sizer."+group, rule(group, []string{"gadgets"}, "update", "patch", "granular:example.com/size"))
		grant(t, s, "painter."+group, rule(group, []string{"gadgets"}, "granular", "granular:example.com/color"))
	}
	grant(t, s, "claimant", rule("apiregistration.k8s.io", []string{"apiservices"}, "granular", "granular:controller"))
	client, err := dynamic.NewForConfig(s.Admin())
	must(t, err)
	services, err := allowlist.ListServices(t.Context(), client)
	must(t, err)
	if len(services.Claimed) > 0 || len(services.Own) < 10 {
		t.Fatalf("of a new kube-apiserver: claimed %q, own %q", services.Claimed, services.Own)
	}
	t.Run("OfADefinitionInForce", func(t *testing.T) { aDefinitionInForceKeepsItsBarrier(t, s) })
	t.Run("OfADefinitionMadeLater", func(t *testing.T) { aDefinitionMadeLaterHasItsBarrier(t, s) })
}

// patches returns a function that patches the Gadget "one", and a function that reads the stored size with kubectl.
func patches(t *testing.T, s *stack.Stack, group string) (patch func(user, spec string) func() *corpus.Answer, size func() string) {
	t.Helper()
	patch = func(user, spec string) func() *corpus.Answer {
		w := wire(t, s, user+"."+group)
		return func() *corpus.Answer {
			return send(t, w, http.MethodPatch, "/apis/"+group+"/v1/namespaces/default/gadgets/one", merge, fields(t, `{"spec":`+spec+`}`))
		}
	}
	return patch, func() string {
		return mustKubectl(t, s, "", "get", "gadgets."+group, "one", "-o", "jsonpath={.spec.size}")
	}
}

func makeGadget(t *testing.T, s *stack.Stack, group string) {
	t.Helper()
	remove(t, s, "customresourcedefinition", "gadgets."+group)
	put(t, s, gadgets(group))
	established(t, s, "gadgets."+group)
	eventually(t, func() *corpus.Answer {
		return send(t, wire(t, s, "admin", "system:masters"), http.MethodPost, "/apis/"+group+"/v1/namespaces/default/gadgets", "application/json",
			fields(t, `{"apiVersion":"`+group+`/v1","kind":"Gadget","metadata":{"name":"one"},"spec":{"size":1}}`))
	}, 201)
}

// awaitFault waits until fieldperm reports the fault of the group, and the cure.
func awaitFault(t *testing.T, s *stack.Stack, group, service string) {
	t.Helper()
	want := []string{"gadgets." + group + ":/spec/group", "automanaged=onstart", service + `\"`}
	var log, missing string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 40*time.Second, true, func(context.Context) (bool, error) {
		log, missing = s.WebhookLogTail(), ""
		for _, part := range want {
			if !strings.Contains(log, part) {
				missing = part
			}
		}
		return missing == "", nil
	})
	if err != nil {
		t.Fatalf("fieldperm does not say %q: %v:\n%s", missing, err, log)
	}
}

// holds checks that only a user with the verb of the barrier passes the barrier, and that the marker passes nothing.
func holds(t *testing.T, patch func(user, spec string) func() *corpus.Answer, size func() string) {
	t.Helper()
	answer := eventually(t, patch("updater", `{"size":2}`), 403)
	says(t, answer.Status.Message, "may not change .spec.size", "granular:example.com/size")
	if got := size(); got != "1" {
		t.Errorf("stored is size %q", got)
	}
	expect(t, patch("updater", `{"color":"red"}`)(), 200)
	eventually(t, patch("painter", `{"color":"blue"}`), 403)
	expect(t, patch("sizer", `{"size":3}`)(), 200)
	if got := size(); got != "3" {
		t.Errorf("stored is size %q", got)
	}
}

// awaitBarrier waits until the barrier is in force. Then it resets the stored size to its first value.
func awaitBarrier(t *testing.T, s *stack.Stack, group string, patch func(user, spec string) func() *corpus.Answer, size func() string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); patch("updater", `{"size":2}`)().Code != 403; {
		if time.Now().After(deadline) {
			t.Fatalf("the barrier never is in force; stored is size %q:\n%s", size(), s.WebhookLogTail())
		}
		mustKubectl(t, s, "", "patch", "gadgets."+group, "one", "--type=merge", "-p", `{"spec":{"size":1}}`)
	}
	mustKubectl(t, s, "", "patch", "gadgets."+group, "one", "--type=merge", "-p", `{"spec":{"size":1}}`)
}

func aDefinitionInForceKeepsItsBarrier(t *testing.T, s *stack.Stack) {
	t.Helper()
	const group = "before.example.com"
	makeGadget(t, s, group)
	patch, size := patches(t, s, group)
	awaitBarrier(t, s, group, patch, size)
	eventually(t, patch("painter", `{"color":"green"}`), 200)

	expect(t, send(t, wire(t, s, "claimant"), http.MethodPatch, "/apis/apiregistration.k8s.io/v1/apiservices/v1."+group, merge,
		fields(t, `{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":"onstart"}}}`)), 200)
	awaitFault(t, s, group, "v1."+group)
	holds(t, patch, size)

	// The correction: kube-apiserver creates the APIService again.
	mustKubectl(t, s, "", "delete", "apiservice", "v1."+group)
	eventually(t, patch("painter", `{"color":"yellow"}`), 200)
	expect(t, patch("updater", `{"size":4}`)(), 403)
}

// aDefinitionMadeLaterHasItsBarrier: no definition was in force in the group when its APIService got the label.
func aDefinitionMadeLaterHasItsBarrier(t *testing.T, s *stack.Stack) {
	t.Helper()
	const group = "after.example.com"
	mustKubectl(t, s, "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v99."+group+", labels: {kube-aggregator.kubernetes.io/automanaged: onstart}}\n"+
		"spec: {group: "+group+", version: v99, groupPriorityMinimum: 1000, versionPriority: 15}\n", "create", "-f", "-")
	remove(t, s, "apiservice", "v99."+group)
	makeGadget(t, s, group)
	patch, size := patches(t, s, group)
	awaitBarrier(t, s, group, patch, size)
	awaitFault(t, s, group, "v99."+group)
	holds(t, patch, size)
}
