package uncovered

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/fieldperm/fieldperm/generators/webhooks"
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

// TestA6_AnEmptyStateIsReplaced: an editor leaves the path without a state.
func TestA6_AnEmptyStateIsReplaced(t *testing.T) {
	client := fake.NewClientset()
	f := beside(newFixture(t, client, set("", "secrets")), "v1.0.0", "https://probe/probe/fieldperm") // The address has it too.
	must(t, f.keep(t.Context()))
	before := webhooks.State(live(t, client))
	client.ClearActions()
	must(t, f.keep(t.Context()))
	if before == "" || writes(client) != 0 {
		t.Errorf("state is %q, and is written %d times more", before, writes(client))
	}
	c := live(t, client)
	*webhookNamed(c, webhooks.ProbeWebhook).ClientConfig.URL = "https://probe/probe/fieldperm" + webhooks.ProbePath
	_, err := f.configurations().Update(t.Context(), c, metav1.UpdateOptions{})
	must(t, err)
	f.Renew("another")
	must(t, f.keep(t.Context()))
	if state := webhooks.State(live(t, client)); state == "" || state == before || f.State() != state {
		t.Errorf("state is %q, was %q", state, before)
	}
}

// TestA6_AServerThatKeepsAnEarlierVersionGetsANewState: the next write of an object makes a kube-apiserver read it again.
func TestA6_AServerThatKeepsAnEarlierVersionGetsANewState(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "secrets"))
	must(t, f.keep(t.Context()))
	before := f.State()
	f.Renew("another")
	must(t, f.keep(t.Context()))
	if f.State() != before {
		t.Error("a state that is not stored was replaced")
	}
	f.Renew(before)
	for range 2 {
		must(t, f.keep(t.Context()))
	}
	after := f.State()
	if after == "" || after == before || webhooks.State(live(t, client)) != after {
		t.Errorf("state is %q, was %q", after, before)
	}
	must(t, f.keep(t.Context()))
	if f.State() != after {
		t.Error("one request has two new states")
	}
}

// TestA6_AStateEndsWithTheNextWrite: whoever writes the configuration leaves the path as it was.
func TestA6_AStateEndsWithTheNextWrite(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "secrets"))
	must(t, f.keep(t.Context()))
	c := live(t, client)
	if state := webhooks.State(c); state == "" || state != f.State() {
		t.Errorf("state is %q, and %q in the object", f.State(), state)
	}
	c.Webhooks[0].Rules = nil
	c, err := f.configurations().Update(t.Context(), c, metav1.UpdateOptions{})
	must(t, err)
	if state := webhooks.State(c); state != "" {
		t.Errorf("state is %q after another write", state)
	}
}
