// Package fieldperm measures fieldperm on the reviews of its peers: its handler of /admit/granular, with the catalogue of built-in kinds. Its
// checks go to a SubjectAccessReview API over TLS, once with its cache of decisions, and once without.
package fieldperm

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/peers/reviews"
)

// holders are the users and their verbs, as Roles grant them.
var holders = map[string][]string{
	reviews.Scaler:   {"granular", "granular:scale"},
	reviews.Deployer: {"granular", "granular:specification"},
}

func peers(tb testing.TB) []reviews.Peer {
	tb.Helper()
	cases := reviews.Deployments(tb)
	return []reviews.Peer{
		reviews.Webhook("fieldperm", cases, "/admit/granular", handler(tb, time.Hour)),
		reviews.Webhook("fieldperm-uncached", cases, "/admit/granular", handler(tb, 0)),
	}
}

// compiled compiles the schemas once.
var compiled = sync.OnceValues(func() (*schema.Schema, []error) {
	topology, err := load.BuiltIn()
	if err != nil {
		return nil, []error{err}
	}
	catalogue, err := load.Catalogue(true)
	if err != nil {
		return nil, []error{err}
	}
	return compile.Compile(compile.Documents{Topologies: []compile.Topology{topology}, Permissions: catalogue})
})

func handler(tb testing.TB, ttl time.Duration) http.Handler {
	tb.Helper()
	permissions, errs := compiled()
	if len(errs) > 0 {
		tb.Fatal(errs)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	tb.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	chain, err := authz.NewChain(tb.Context(), authz.Settings{TTL: ttl, Cluster: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}})
	if err != nil {
		tb.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { chain.Run(tb.Context()) })
	tb.Cleanup(running.Wait)
	reviewer := &admission.Reviewer{Schema: func() *schema.Schema { return permissions }, Authorizer: chain.For}
	return admission.Handlers{MaxBytes: 8 << 20}.ReviewHandler(admission.Granular, reviewer)
}

// answer is the SubjectAccessReview API.
func answer(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Spec.ResourceAttributes == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Status.Allowed = slices.Contains(holders[review.Spec.User], review.Spec.ResourceAttributes.Verb)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func TestPeer(t *testing.T) {
	for _, p := range peers(t) {
		reviews.Test(t, p)
	}
}

func TestLimits(t *testing.T) {
	for _, p := range peers(t) {
		reviews.TestLimits(t, p, reviews.Limits(t))
	}
}

func BenchmarkPeer(b *testing.B) {
	for _, p := range peers(b) {
		reviews.Benchmark(b, p)
	}
}
