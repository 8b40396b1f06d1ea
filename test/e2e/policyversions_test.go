//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/corpus"
)

// TestK5_AVersionThatAppearsLaterIsNotChecked: a condition is written for v1 of a custom resource. Its author adds v2, in which the field has
// another name. From the first moment on, the condition allows nothing in v2, and denies it.
func TestK5_AVersionThatAppearsLaterIsNotChecked(t *testing.T) {
	s := start(t)
	install(t, s)
	const first = `{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"privileged":{"type":"boolean"}}}}}}}`
	const second = `{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"priv":{"type":"boolean"}}}}}}}`
	definition := func(versions ...string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gads.later.example.com"},"spec":{"group":"later.example.com","scope":"Namespaced",
			"names":{"kind":"Gad","plural":"gads","singular":"gad","listKind":"GadList"},"versions":[` + strings.Join(versions, ",") + `]}}`
	}
	remove(t, s, "customresourcedefinition", "gads.later.example.com")
	put(t, s, definition(first))
	established(t, s, "gads.later.example.com")
	const condition = "!has(object.spec.privileged) || object.spec.privileged == false"
	gads := []v1alpha1.PolicyResource{{APIGroups: []string{"later.example.com"}, Resources: []string{"gads"}}}
	policy(t, s, "later-allow", &v1alpha1.ConditionalPolicySpec{
		Subjects: []v1alpha1.Subject{{Kind: "User", Name: "later"}}, Verbs: []string{"create"}, Resources: gads, Effect: v1alpha1.PolicyAllow, Condition: condition,
	})
	policy(t, s, "later-deny", &v1alpha1.ConditionalPolicySpec{
		Subjects: []v1alpha1.Subject{{Kind: "User", Name: "later-rbac"}}, Verbs: []string{"create"}, Resources: gads, Effect: v1alpha1.PolicyDeny, Condition: "!(" + condition + ")",
	})
	grant(t, s, "later-rbac", rule("later.example.com", []string{"gads"}, "*"))
	users := map[string]*corpus.Wire{"later": wire(t, s, "later"), "later-rbac": wire(t, s, "later-rbac")}
	create := func(user, version, field string) *corpus.Answer {
		body := `{"apiVersion":"later.example.com/` + version + `","kind":"Gad","metadata":{"generateName":"x-"},"spec":{"` + field + `":true}}`
		return send(t, users[user], http.MethodPost, "/apis/later.example.com/"+version+"/namespaces/default/gads", "application/json", fields(t, body), "dryRun=All")
	}
	for user := range users {
		eventually(t, func() *corpus.Answer { return create(user, "v1", "other") }, http.StatusCreated)
		expect(t, create(user, "v1", "privileged"), http.StatusForbidden)
	}
	mustKubectl(t, s, definition(first, second), "replace", "-f", "-")
	served := 0
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && served < 60; {
		for user := range users {
			switch answer := create(user, "v2", "priv"); answer.Code {
			case http.StatusCreated:
				t.Fatalf("%s created an object of a version that the condition was not checked against", user)
			case http.StatusForbidden:
				served++
			}
		}
	}
	if served < 2 {
		t.Errorf("only %d requests were decided", served)
	}
	// In the version for which it is written, the policy goes on deciding.
	for user := range users {
		expect(t, create(user, "v1", "other"), http.StatusCreated)
		expect(t, create(user, "v1", "privileged"), http.StatusForbidden)
	}
}
