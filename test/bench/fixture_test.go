package bench

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// holders are the users and their verbs. A verb that ends with * stands for every verb with this prefix.
var holders = map[string][]string{
	"scaler":    {"granular", "granular:scale"},
	"deployer":  {"granular", "granular:specification"},
	"editor":    {"granular", "granular:datum(app-00.properties)"},
	"owner":     {"granular", "granular:*"},
	"piecemeal": {"granular", "granular:example.com/entry(*"},
	"marked":    {"granular"},
	"guard":     {"granular", "granular:*", "granular:example.com/privilege"},
}

// documents are the types that every kube-apiserver serves, with the catalogue, and the custom resources of this package.
var documents = sync.OnceValues(func() (schema.Documents, []error) {
	topology, err := load.BuiltIn()
	if err != nil {
		return schema.Documents{}, []error{err}
	}
	catalogue, err := load.Catalogue(true)
	if err != nil {
		return schema.Documents{}, []error{err}
	}
	out := schema.Documents{Topologies: []schema.Topology{topology}, Permissions: catalogue}
	for source, text := range map[string]string{"panels": panelDefinition(), "trials": trialDefinition} {
		more, errs := load.Decode(source, []byte(text))
		if len(errs) > 0 {
			return out, errs
		}
		out = out.Append(more)
	}
	return out, nil
})

// compiled is compiled once: it is the same for every benchmark.
var compiled = sync.OnceValues(func() (*schema.Schema, []error) {
	docs, errs := documents()
	if len(errs) > 0 {
		return nil, errs
	}
	return schema.Compile(docs)
})

// typeOf returns structured-merge-diff's type of a kind.
func typeOf(tb testing.TB, kind runtimeschema.GroupVersionKind) typed.ParseableType {
	tb.Helper()
	docs, errs := documents()
	if len(errs) > 0 {
		tb.Fatal(errs)
	}
	for _, topology := range docs.Topologies {
		if name, ok := topology.Kinds[kind]; ok {
			return typed.ParseableType{TypeRef: smd.TypeRef{NamedType: &name}, Schema: topology.Types}
		}
	}
	tb.Fatalf("%s: no type", kind)
	return typed.ParseableType{}
}

// desk decides reviews as fieldperm-webhook does, without HTTP: its checks go through the chain of authorizers, whose SubjectAccessReview
// API is in this process.
type desk struct {
	*admission.Reviewer
	permissions *schema.Schema
	chain       *authz.Chain
}

// newDesk returns a desk whose chain caches decisions for longer than any benchmark.
func newDesk(tb testing.TB) *desk {
	tb.Helper()
	permissions, errs := compiled()
	if len(errs) > 0 {
		tb.Fatal(errs)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	tb.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ctx, cancel := context.WithCancel(context.Background())
	chain, err := authz.NewChain(ctx, authz.Settings{
		TTL:     time.Hour,
		Cluster: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}},
	})
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { chain.Run(ctx) })
	tb.Cleanup(func() { cancel(); running.Wait() })
	return &desk{
		Reviewer:    &admission.Reviewer{Schema: func() *schema.Schema { return permissions }, Authorizer: chain.For},
		permissions: permissions,
		chain:       chain,
	}
}

// answer is the SubjectAccessReview API.
func answer(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Spec.ResourceAttributes == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	verb := review.Spec.ResourceAttributes.Verb
	review.Status.Allowed = slices.ContainsFunc(holders[review.Spec.User], func(held string) bool {
		prefix, any := strings.CutSuffix(held, "(*")
		return held == verb || any && strings.HasPrefix(verb, prefix+"(")
	})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}
