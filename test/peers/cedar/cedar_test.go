// Package peer measures the admission handler of cedar-access-control-for-k8s with a policy in memory, in front of its policy that allows the
// rest, as its program does.
package peer

import (
	"os"
	"testing"

	"github.com/awslabs/cedar-access-control-for-k8s/internal/server/admission"
	"github.com/awslabs/cedar-access-control-for-k8s/internal/server/store"
	"github.com/cedar-policy/cedar-go"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fieldperm/fieldperm/test/peers/reviews"
)

func peer(tb testing.TB) reviews.Peer {
	tb.Helper()
	log.SetLogger(logr.Discard())
	text, err := os.ReadFile("policy.cedar")
	if err != nil {
		tb.Fatal(err)
	}
	policies, err := store.NewMemoryStore("policy.cedar", text, true)
	if err != nil {
		tb.Fatal(err)
	}
	rest := cedar.NewPolicySet()
	rest.Add("allow-all-admission", admission.AllowAllAdmissionPolicy())
	stores := store.TieredPolicyStores{policies, store.StaticStore(*rest)}
	return reviews.Webhook("cedar-access-control-for-k8s", reviews.Deployments(tb), "/v1/admit", &webhook.Webhook{Handler: admission.NewHandler(stores, true)})
}

func TestPeer(t *testing.T) { reviews.Test(t, peer(t)) }

// A list is a set to Cedar, and each field that counts has to be named.
func TestLimits(t *testing.T) {
	reviews.TestLimits(t, peer(t), reviews.Limits(t), reviews.Order, reviews.Ownership, reviews.NewField)
}

func BenchmarkPeer(b *testing.B) { reviews.Benchmark(b, peer(b)) }
