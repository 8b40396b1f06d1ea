// Package kyverno measures Kyverno's handler of ValidatingPolicies, without its filters and the roles of the user.
package kyverno

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/julienschmidt/httprouter"
	policies "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"github.com/kyverno/kyverno/pkg/cel/matching"
	"github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler"
	"github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	"github.com/kyverno/kyverno/pkg/event"
	"github.com/kyverno/kyverno/pkg/webhooks/handlers"
	"github.com/kyverno/kyverno/pkg/webhooks/resource/vpol"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/peers/reviews"
)

// discarded takes the events, which Kyverno sends later from a queue.
type discarded struct{}

func (discarded) Add(...event.Info) {}

func peer(tb testing.TB) reviews.Peer {
	tb.Helper()
	text, err := os.ReadFile("policy.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	policy := &policies.ValidatingPolicy{}
	if err := yaml.UnmarshalStrict(text, policy); err != nil {
		tb.Fatal(err)
	}
	provider, err := engine.NewProvider(compiler.NewCompiler(), []policies.ValidatingPolicyLike{policy}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	decides := engine.NewEngine(provider, namespace, matching.NewMatcher())
	handler := vpol.New(decides, libs.NewFakeContextProvider(), nil, false, discarded{})
	validate := func(ctx context.Context, logger logr.Logger, request handlers.AdmissionRequest, began time.Time) handlers.AdmissionResponse {
		return handler.ValidateClustered(ctx, logger, request, "", began)
	}
	mux := httprouter.New()
	mux.HandlerFunc(http.MethodPost, "/vpol/*policies", handlers.FromAdmissionFunc("VALIDATE", validate).WithAdmission(logr.Discard()).ToHandlerFunc("VPOL"))
	return reviews.Webhook("Kyverno", reviews.Deployments(tb), "/vpol/fields", mux)
}

func TestPeer(t *testing.T) { reviews.Test(t, peer(t)) }

// managedFields change with every write, so they cannot be compared as a whole.
func TestLimits(t *testing.T) {
	reviews.TestLimits(t, peer(t), reviews.Limits(t), reviews.Ownership)
}

func BenchmarkPeer(b *testing.B) { reviews.Benchmark(b, peer(b)) }
