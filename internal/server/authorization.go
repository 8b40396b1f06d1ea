package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/semaphore"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	componenttracing "k8s.io/component-base/tracing"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/authn"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/tracing"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

// parallelChecks is how many verbs of one level are asked at the same time (P1).
const parallelChecks = 4

// compiles is how many proposed documents are compiled at a time.
const compiles = 2

// authorization has the chain of authorizers, the reviewers that ask it, and the authentication of callers by token.
type authorization struct {
	chain     *authz.Chain
	tokens    *authn.Authenticator // nil without --authentication-config
	schemas   *schemas
	writes    *admission.Reviewer
	requests  *admission.AuthorizeReviewer
	documents *admission.SchemaReviewer
}

func newAuthorization(
	ctx context.Context, o *Options, config *rest.Config, m *metrics.Metrics, tracer componenttracing.TracerProvider, known *schemas, e *enforcement,
) (*authorization, error) {
	identity, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of this host: %w", err)
	}
	a := &authorization{schemas: known}
	cluster := client(config, "authorization")
	cluster.Wrap(tracing.Client(tracer))
	a.chain, err = authz.NewChain(ctx, authz.Settings{
		File: o.AuthorizationConfig, TTL: o.DecisionCacheTTL, Cluster: cluster, Identity: identity, Observer: m,
	})
	if err != nil {
		return nil, fmt.Errorf("--authorization-config: %w", err)
	}
	if o.AuthenticationConfig != "" {
		a.tokens, err = authn.New(ctx, authn.Settings{File: o.AuthenticationConfig, Identity: identity, Observer: m})
		if err != nil {
			return nil, fmt.Errorf("--authentication-config: %w", err)
		}
	}
	a.writes = &admission.Reviewer{
		Schema:     known.Schema,
		Authorizer: a.chain.For, Conditional: authz.ConditionalAfter(known.conditional),
		Limits: fieldperm.Limits{MaxChecks: o.MaxChecks, Parallel: parallelChecks},
	}
	a.requests = &admission.AuthorizeReviewer{
		Allowed: known.allowed, Authorizer: a.chain.ForReview, Enforced: e.interlock.Enforced, Probes: e.tokens, Policies: a.phaseOne, Status: e.status,
	}
	a.documents = &admission.SchemaReviewer{Documents: known.Documents, Holders: a.holders, Policy: known.policies.Try, Compiles: semaphore.NewWeighted(compiles)}
	return a, nil
}

// holders returns the names of the roles that grant a verb on the resource of a kind.
func (a *authorization) holders(kind runtimeschema.GroupKind, is func(verb string) bool) ([]string, error) {
	resource := webhooks.Resource(kind, uncovered.Plurals(a.schemas.Documents().Topologies))
	roles, err := a.chain.Holders(kind.Group, resource, is)
	if errors.Is(err, authz.ErrNoRoles) {
		return nil, admission.ErrHoldersUnknown
	}
	var out []string
	for _, role := range roles {
		for _, subject := range role.Subjects {
			out = append(out, fmt.Sprintf("%s (%s)", subject, role.Role))
		}
	}
	return out, err
}
