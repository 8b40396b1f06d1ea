package uncovered

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// denying makes a Keeper maintain the rules of policies too.
func denying(f *fixture, names ...string) *fixture {
	f.config.Denied = func() []webhooks.Rule { return rules(names...) }
	return f
}

// TestW2_KeeperWritesTheRulesOfPolicies: a rule for deletions has no other operation, and the rules for writes have no deletions.
func TestW2_KeeperWritesTheRulesOfPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(owner())
		f := denying(newFixture(t, client, set("", "secrets")), "deletions of /pods", "apps/deployments")
		must(t, f.keep(t.Context()))
		want(t, "rules", names(rulesOf(live(t, client))), "/secrets", "/secrets/*", "apps/deployments", "deletions of /pods")
		deletes := 0
		for _, rule := range live(t, client).Webhooks[0].Rules {
			if slices.Contains(rule.Operations, admissionregistrationv1.Delete) {
				deletes++
				if len(rule.Operations) != 1 || !slices.Equal(rule.Resources, []string{"pods"}) {
					t.Errorf("rule is %+v", rule)
				}
			}
		}
		if deletes != 1 {
			t.Errorf("%d rules for deletions", deletes)
		}
		if ok, reason := f.Enforced(rules("deletions of /pods", "apps/deployments")); !ok {
			t.Error(reason)
		}
		for _, other := range []string{"deletions of /secrets", "/pods"} {
			if ok, reason := f.Enforced(rules(other)); ok || !strings.Contains(reason, "has no rule for") {
				t.Errorf("%s: enforced is %t, %s", other, ok, reason)
			}
		}
		denying(f)
		time.Sleep(fresh)
		must(t, f.keep(t.Context()))
		want(t, "before its time", names(rulesOf(live(t, client))), "/secrets", "/secrets/*", "apps/deployments", "deletions of /pods")
		time.Sleep(removeAfter)
		must(t, f.keep(t.Context()))
		want(t, "removed", names(rulesOf(live(t, client))), "/secrets", "/secrets/*")
	})
}

// D6: an older version that knows no rules for deletions, as one that is behind, removes none, whether it writes or not.
func TestD6_AnOlderVersionKeepsDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		older := beside(newFixture(t, client, set("", "secrets")), "v1.0.0", "https://127.0.0.1:1")
		newer := denying(beside(newFixture(t, client), "v1.1.0", "https://127.0.0.1:1"), "deletions of /pods")
		must(t, older.keep(t.Context()))
		must(t, newer.keep(t.Context()))
		for range 3 {
			must(t, older.keep(t.Context()))
			time.Sleep(2 * removeAfter)
		}
		older.use(set("", "secrets"), set("", "configmaps"))
		must(t, older.keep(t.Context()))
		want(t, "rules", names(rulesOf(live(t, client))), "/configmaps", "/configmaps/*", "/secrets", "/secrets/*", "deletions of /pods")
	})
}
