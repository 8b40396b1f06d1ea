package uncovered

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestW2_KeeperRemovesNothingRightAfterAnOutage: in an outage, etcd may have been restored from a backup that has the set of the rule. The
// replica knows that only when its informers have listed again.
func TestW2_KeeperRemovesNothingRightAfterAnOutage(t *testing.T) {
	for _, name := range []string{"fieldperm", "fieldperm-uncovered"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(owner())
				f := newFixture(t, client, set("", "pods"), set("apps", "deployments"))
				must(t, f.keep(t.Context()))
				f.use(set("", "pods"))
				must(t, f.keep(t.Context()))
				rules := func() int { return len(live(t, client).Webhooks[0].Rules) }
				before := rules()

				time.Sleep(removeAfter - time.Second)
				down := true
				client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
					get, ok := action.(clienttesting.GetAction)
					return down && ok && get.GetName() == name, nil, errors.New("connection refused")
				})
				if f.keep(t.Context()) == nil {
					t.Fatal("no outage")
				}
				down = false
				time.Sleep(time.Second)
				must(t, f.keep(t.Context()))
				time.Sleep(removeAfter - time.Second)
				must(t, f.keep(t.Context()))
				if got := rules(); got != before {
					t.Fatalf("%d rules, want %d as before the outage", got, before)
				}
				time.Sleep(time.Second)
				must(t, f.keep(t.Context()))
				if got := rules(); got >= before {
					t.Errorf("%d rules, want fewer than %d: the rule is never removed", got, before)
				}
			})
		})
	}
}
