package uncovered

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestW2_RulesForAPartAreNone(t *testing.T) {
	namespaced := admissionregistrationv1.NamespacedScope
	for name, narrow := range map[string]func(*admissionregistrationv1.RuleWithOperations){
		"version": func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{"v1"} },
		"scope":   func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = &namespaced },
		"operation": func(r *admissionregistrationv1.RuleWithOperations) {
			r.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
		},
	} {
		client := fake.NewClientset(owner())
		f := newFixture(t, client, set("", "pods"))
		must(t, f.keep(t.Context()))
		c := live(t, client)
		narrow(&c.Webhooks[0].Rules[0])
		if got := rulesOf(c); len(got) != 0 {
			t.Errorf("for one %s: %q", name, names(got))
		}
	}
}

func TestW2_RulesOfAnyOperation(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "secrets"))
	must(t, f.keep(t.Context()))
	c := live(t, client)
	writesAndDeletions := []string{"/secrets", "/secrets/*", "deletions of /secrets", "deletions of /secrets/*"}
	c.Webhooks[0].Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete, admissionregistrationv1.Update, admissionregistrationv1.Create}
	want(t, "three operations", names(rulesOf(c)), writesAndDeletions...)
	c.Webhooks[0].Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	want(t, "all", names(rulesOf(c)), append([]string{writesAndDeletions[0], writesAndDeletions[1], "connections of /secrets", "connections of /secrets/*"}, writesAndDeletions[2:]...)...)
}
