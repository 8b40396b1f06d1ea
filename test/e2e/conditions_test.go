//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestC2_AConditionOnTheObjectHoldsForScalesAndBindings: a match condition reads the object's labels, which a Scale and a Binding
// do not have. There it counts as true, and whoever makes such a set is told.
func TestC2_AConditionOnTheObjectHoldsForScalesAndBindings(t *testing.T) {
	s := startAs(t, stack.REST)
	install(t, s)
	grant(t, s, "editor", rule("apps", []string{"deployments", "deployments/scale"}, "get", "update", "patch"), rule("", []string{"pods/binding", "bindings"}, "create"))
	editor := wire(t, s, "editor")
	for _, env := range []string{"prod", "test"} {
		mustKubectl(t, s, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"`+env+`","labels":{"env":"`+env+`"}},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`, "create", "-f", "-")
	}
	mustKubectl(t, s, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"unbound","labels":{"env":"prod"}},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"web","image":"x"}]}}`, "create", "-f", "-")
	patch := func(path string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, editor, http.MethodPatch, "/apis/apps/v1/namespaces/default/deployments/"+path, merge, fields(t, `{"spec":{"replicas":3}}`), "dryRun=All")
		}
	}
	bind := func(path string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, editor, http.MethodPost, "/api/v1/namespaces/default/"+path, "application/json", fields(t, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"unbound"},"target":{"kind":"Node","name":"node"}}`), "dryRun=All")
		}
	}
	const onLabels = `  matchConditions: [{name: production, expression: "has(object.metadata.labels) && object.metadata.labels[?'env'].orValue('') == 'prod'"}]` + "\n"
	apply := func(name, document, warning string) {
		t.Helper()
		_, stderr, err := kubectl(t, s, document, "apply", "-f", "-")
		if err != nil || !strings.Contains(stderr, warning) || (warning == "") != (stderr == "") {
			t.Errorf("%s: %v, warning %q, want %q", name, err, stderr, warning)
		}
	}
	expect(t, patch("prod/scale")(), 200)
	expect(t, bind("bindings")(), 201)

	apply("production", uncoveredSet("production", "granular:scale", "apps", "deployments")+onLabels, "(production) count as true, and the set holds for every object, at deployments/scale.apps,")
	inForce(t, "the object, by itself", patch("prod"), 403)
	inForce(t, "the object, by its Scale", patch("prod/scale"), 403)
	// What the condition lets through passes where it can be read.
	expect(t, patch("test")(), 200)
	expect(t, patch("test/scale")(), 403)
	enforced(t, s, "uncoveredpermissionset", "production", "True Enforced", "refused through deployments.apps, deployments/scale.apps", "(production) count as true", "at deployments/scale.apps")

	apply("placement", uncoveredSet("placement", "granular:nodeAssignment", "", "pods")+onLabels, "at bindings, pods/binding,")
	for _, path := range []string{"bindings", "pods/unbound/binding"} {
		inForce(t, path, bind(path), 403)
	}

	// A condition on the request alone is evaluated there.
	apply("no longer about objects", uncoveredSet("production", "granular:scale", "apps", "deployments")+`  matchConditions: [{name: production, expression: "request.name == 'prod'"}]`+"\n", "")
	inForce(t, "the request, by another Scale", patch("test/scale"), 200)
	expect(t, patch("prod/scale")(), 403)
}
