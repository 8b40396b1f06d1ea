//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestC2_AMatchConditionIsAboutTheRequest: a match condition on objects is refused, and one on the request is evaluated for a Scale too.
func TestC2_AMatchConditionIsAboutTheRequest(t *testing.T) {
	s := startOwn(t, stack.Config{Topology: stack.REST})
	install(t, s)
	grant(t, s, "editor", rule("apps", []string{"deployments", "deployments/scale"}, "get", "update", "patch"))
	editor := wire(t, s, "editor")
	for _, name := range []string{"prod", "test"} {
		put(t, s, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"`+name+`"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`)
	}
	patch := func(path string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, editor, http.MethodPatch, "/apis/apps/v1/namespaces/default/deployments/"+path, merge, fields(t, `{"spec":{"replicas":3}}`), "dryRun=All")
		}
	}
	set := func(condition string) string {
		return uncoveredSet("production", "granular:scale", "apps", "deployments") + `  matchConditions: [{name: production, expression: "` + condition + `"}]` + "\n"
	}
	for _, condition := range []string{"has(object.metadata.labels)", "oldObject != null", "request.object.metadata.name == 'prod'"} {
		if _, stderr, err := kubectl(t, s, set(condition), "apply", "-f", "-"); err == nil || !strings.Contains(stderr, "what depends on objects is a ConditionalPolicy of effect Deny") {
			t.Errorf("%s: %v, %s", condition, err, stderr)
		}
	}
	remove(t, s, "uncoveredpermissionset", "production")
	mustKubectl(t, s, set("request.name == 'prod'"), "apply", "-f", "-")
	inForce(t, "by the object", patch("prod"), 403)
	expect(t, patch("prod/scale")(), 403)
	expect(t, patch("test")(), 200)
	expect(t, patch("test/scale")(), 200)
}

// TestC2_ABindingIsAChangeOfAPodThatItDoesNotShow: barriers on changes of Pods hold for a Binding, which admission sees as CREATE although
// it changes an existing Pod.
func TestC2_ABindingIsAChangeOfAPodThatItDoesNotShow(t *testing.T) {
	s := start(t)
	install(t, s)
	grant(t, s, "changer", rule("", []string{"pods"}, "get", "create", "patch"), rule("", []string{"pods/binding", "bindings"}, "create"))
	changer := wire(t, s, "changer")
	remove(t, s, "pod", "placed")
	remove(t, s, "uncoveredpermissionset", "changes")
	remove(t, s, "permissionschema", "stage")
	pod := func(name, labels string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","labels":` + labels + `},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"a","image":"a"}]}}`
	}
	put(t, s, pod("placed", `{"env":"production"}`))
	patch := func(labels string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, changer, http.MethodPatch, "/api/v1/namespaces/default/pods/placed", merge, fields(t, `{"metadata":{"labels":`+labels+`}}`), "dryRun=All")
		}
	}
	create := func(labels string) *corpus.Answer {
		return send(t, changer, http.MethodPost, "/api/v1/namespaces/default/pods", "application/json", fields(t, pod("new", labels)), "dryRun=All")
	}
	bind := func(path, labels string) func() *corpus.Answer {
		return func() *corpus.Answer {
			body := `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"placed","labels":` + labels + `},"target":{"kind":"Node","name":"node"}}`
			return send(t, changer, http.MethodPost, "/api/v1/namespaces/default/"+path, "application/json", fields(t, body), "dryRun=All")
		}
	}
	const team, dev, production = `{"example.com/team":"web"}`, `{"env":"dev"}`, `{"env":"production"}`
	paths := []string{"pods/placed/binding", "bindings"}
	for _, path := range paths {
		expect(t, bind(path, team)(), 201)
		expect(t, bind(path, dev)(), 201)
	}

	apply(t, s, uncoveredSet("changes", "granular:label(example.com)", "", "pods")+`  matchConditions: [{name: changes, expression: "request.operation == 'UPDATE'"}]`+"\n")
	inForce(t, "a set on changes, by the Pod", patch(team), 403)
	for _, path := range paths {
		answer := inForce(t, "a set on changes, by "+path, bind(path, team), 403)
		if !strings.Contains(answer.Status.Message, "granular:label(example.com)") {
			t.Errorf("%s: message %q does not name the barrier's verb", path, answer.Status.Message)
		}
		expect(t, bind(path, "{}")(), 201)
	}
	expect(t, create(team), 201)

	mustKubectl(t, s, `{"apiVersion":"fieldperm.dev/v1alpha1","kind":"PermissionSchema","metadata":{"name":"stage"},"spec":{"kind":"Pod","permissions":[
		{"path":".metadata.labels[\"env\"]","verb":"example.com/stage","excludedWhen":"self == 'production' || oldSelf == 'production'"},
		{"path":".metadata.labels[\"tier\"]","verb":"example.com/tier","excludedWhen":"self == 'gold'"}]}}`, "apply", "-f", "-")
	inForce(t, "a condition on the old value, by the Pod", patch(dev), 403)
	for _, path := range paths {
		inForce(t, "a condition on the old value, by "+path, bind(path, dev), 403)
		expect(t, bind(path, production)(), 403)
		// A condition that reads only the new value is evaluated.
		expect(t, bind(path, `{"tier":"gold"}`)(), 403)
		expect(t, bind(path, `{"tier":"bronze"}`)(), 201)
	}
	expect(t, create(dev), 201)
}

// A Scale to 0 does not contain its replicas, and is still a Scale to 0.
func TestC2_ABarrierOnZeroReplicasHoldsForAScale(t *testing.T) {
	s := start(t)
	install(t, s)
	grant(t, s, "scaling", rule("apps", []string{"deployments", "deployments/scale"}, "get", "patch", "update"))
	scaling := wire(t, s, "scaling")
	remove(t, s, "permissionschema", "awake")
	remove(t, s, "deployment", "awake")
	mustKubectl(t, s, "", "create", "deployment", "awake", "--image=a", "--replicas=3")
	to := func(path, replicas string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, scaling, http.MethodPatch, "/apis/apps/v1/namespaces/default/deployments/awake"+path, merge, fields(t, `{"spec":{"replicas":`+replicas+`}}`), "dryRun=All")
		}
	}
	expect(t, to("/scale", "0")(), 200)
	mustKubectl(t, s, `{"apiVersion":"fieldperm.dev/v1alpha1","kind":"PermissionSchema","metadata":{"name":"awake"},"spec":{"group":"apps","kind":"Deployment","permissions":[
		{"path":".spec.replicas","verb":"scale","excludedWhen":"self == 0"}]}}`, "apply", "-f", "-")
	inForce(t, "by the object", to("", "0"), 403)
	inForce(t, "by its scale", to("/scale", "0"), 403)
	expect(t, to("/scale", "2")(), 200)
}

// TestK4_ConditionsReadStoredObjectsAsReadersDo: server-side apply shows null and empty fields in a review, and no reader ever gets them. A policy
// denies if its condition is true of the object that the API server returns.
func TestK4_ConditionsReadStoredObjectsAsReadersDo(t *testing.T) {
	s := startOwn(t, stack.Config{})
	install(t, s)
	mustKubectl(t, s, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.readers.example.com"},"spec":{"group":"readers.example.com","scope":"Namespaced","names":{"kind":"Gadget","plural":"gadgets"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"},"template":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}}}}]}}`, "create", "-f", "-")
	established(t, s, "gadgets.readers.example.com")
	grant(t, s, "editor", rule("readers.example.com", []string{"gadgets"}, "get", "create", "update", "patch"))
	editor := wire(t, s, "editor")
	const one = "/apis/readers.example.com/v1/namespaces/default/gadgets/one"
	write := func(metadata, spec string, parameters ...string) *corpus.Answer {
		return send(t, editor, http.MethodPatch, one, "application/apply-patch+yaml", fields(t, `{"apiVersion":"readers.example.com/v1","kind":"Gadget","metadata":{"name":"one"`+metadata+`},"spec":`+spec+`}`), append(parameters, "fieldManager=editor", "force=true")...)
	}
	expect(t, write("", `{"size":1}`), 201)
	deny := func(t *testing.T, condition string) {
		t.Helper()
		policy(t, s, "absent", &v1alpha1.ConditionalPolicySpec{
			Subjects: []v1alpha1.Subject{{Kind: "User", Name: "editor"}}, Verbs: []string{"update", "patch"}, Effect: v1alpha1.PolicyDeny,
			Resources: []v1alpha1.PolicyResource{{APIGroups: []string{"readers.example.com"}, Resources: []string{"gadgets"}}}, Condition: condition,
		})
	}
	const rest = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"`
	for _, c := range []struct{ condition, metadata, spec string }{
		{"!has(object.metadata.labels)", `,"labels":null`, `{"size":2}`},
		{"!has(object.metadata.labels)", `,"labels":{}`, `{"size":2}`},
		{"!has(object.metadata.finalizers)", `,"finalizers":[]`, `{"size":2}`},
		{"!has(object.metadata.ownerReferences)", `,"ownerReferences":[]`, `{"size":2}`},
		{"!has(object.spec.template) || !has(object.spec.template.metadata.labels)", "", `{"size":2,"template":` + rest + `,"labels":null}}}`},
	} {
		t.Run(c.condition+c.metadata, func(t *testing.T) {
			deny(t, c.condition)
			inForce(t, c.condition, func() *corpus.Answer { return write("", `{"size":2}`, "dryRun=All") }, 403)
			expect(t, write(c.metadata, c.spec), 403)
		})
	}
	deny(t, "!has(object.metadata.labels)")
	inForce(t, "with labels", func() *corpus.Answer { return write(`,"labels":{"a":"b"}`, `{"size":2}`, "dryRun=All") }, 200)
}
