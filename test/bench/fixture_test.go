package bench

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/fakeapi"
	"github.com/fieldperm/fieldperm/test/schematest"
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
func documents(tb testing.TB) compile.Documents {
	tb.Helper()
	return schematest.Documents(tb, panelDefinition(), trialDefinition)
}

// compiled is compiled once: it is the same for every benchmark.
func compiled(tb testing.TB) *schema.Schema {
	tb.Helper()
	return schematest.Schema(tb, panelDefinition(), trialDefinition)
}

// typeOf returns structured-merge-diff's type of a kind.
func typeOf(tb testing.TB, kind runtimeschema.GroupVersionKind) typed.ParseableType {
	tb.Helper()
	for _, topology := range documents(tb).Topologies {
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
	permissions := compiled(tb)
	ctx, cancel := context.WithCancel(context.Background())
	chain, err := authz.NewChain(ctx, authz.Settings{TTL: time.Hour, Cluster: fakeapi.Serve(tb, fakeapi.Reviews(answer)).Config()})
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
func answer(_ *http.Request, review *authorizationv1.SubjectAccessReview) error {
	if review.Spec.ResourceAttributes == nil {
		return apierrors.NewBadRequest("no review about a resource")
	}
	verb := review.Spec.ResourceAttributes.Verb
	review.Status.Allowed = slices.ContainsFunc(holders[review.Spec.User], func(held string) bool {
		prefix, any := strings.CutSuffix(held, "(*")
		return held == verb || any && strings.HasPrefix(verb, prefix+"(")
	})
	return nil
}
