// Package gatekeeper measures the validation webhook of Gatekeeper with one constraint whose template is in Rego.
package gatekeeper

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/go-logr/logr"
	templatesv1 "github.com/open-policy-agent/frameworks/constraint/pkg/apis/templates/v1"
	constraint "github.com/open-policy-agent/frameworks/constraint/pkg/client"
	"github.com/open-policy-agent/frameworks/constraint/pkg/client/drivers/rego"
	"github.com/open-policy-agent/frameworks/constraint/pkg/core/templates"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/controller/config/process"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/expansion"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/target"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/util"
	gatekeeper "github.com/open-policy-agent/gatekeeper/v3/pkg/webhook"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/peers/reviews"
)

// cached is the client with the cache of a manager: it knows the namespace, and no Config of Gatekeeper.
type cached struct{ client.Client }

func (cached) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if namespace, ok := into.(*corev1.Namespace); ok {
		namespace.Name = key.Name
	}
	return nil
}

// server keeps the handler that is registered.
type server struct {
	webhook.Server
	handler http.Handler
}

func (s *server) Register(_ string, handler http.Handler) { s.handler = handler }

// registrar is as much of a manager as the webhook needs to register its handler.
type registrar struct {
	manager.Manager
	server *server
}

func (registrar) GetConfig() *rest.Config            { return &rest.Config{Host: "https://127.0.0.1:1"} }
func (registrar) GetClient() client.Client           { return cached{} }
func (registrar) GetAPIReader() client.Reader        { return cached{} }
func (r registrar) GetWebhookServer() webhook.Server { return r.server }

func read(tb testing.TB, name string, into any) {
	tb.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		tb.Fatal(err)
	}
}

func peer(tb testing.TB) reviews.Peer {
	tb.Helper()
	log.SetLogger(logr.Discard())
	driver, err := rego.New(rego.Tracing(false), rego.Externs())
	if err != nil {
		tb.Fatal(err)
	}
	opa, err := constraint.NewClient(constraint.Targets(&target.K8sValidationTarget{}), constraint.Driver(driver), constraint.EnforcementPoints(util.WebhookEnforcementPoint))
	if err != nil {
		tb.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := templatesv1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	var versioned templatesv1.ConstraintTemplate
	var template templates.ConstraintTemplate
	read(tb, "template.yaml", &versioned)
	if err := scheme.Convert(&versioned, &template, nil); err != nil {
		tb.Fatal(err)
	}
	if _, err := opa.AddTemplate(tb.Context(), &template); err != nil {
		tb.Fatal(err)
	}
	var fields unstructured.Unstructured
	read(tb, "constraint.yaml", &fields.Object)
	if _, err := opa.AddConstraint(tb.Context(), &fields); err != nil {
		tb.Fatal(err)
	}
	mutations := mutation.NewSystem(mutation.SystemOpts{})
	hooks := &server{}
	if err := gatekeeper.AddPolicyWebhook(registrar{server: hooks}, gatekeeper.Dependencies{
		OpaClient: opa, ProcessExcluder: process.Get(), MutationSystem: mutations, ExpansionSystem: expansion.NewSystem(mutations),
	}); err != nil {
		tb.Fatal(err)
	}
	return reviews.Webhook("Gatekeeper", reviews.Deployments(tb), "/v1/admit", hooks.handler)
}

func TestPeer(t *testing.T) { reviews.Test(t, peer(t)) }

// managedFields change with every write, so they cannot be compared as a whole.
func TestLimits(t *testing.T) {
	reviews.TestLimits(t, peer(t), reviews.Limits(t), reviews.Ownership)
}

func BenchmarkPeer(b *testing.B) { reviews.Benchmark(b, peer(b)) }
