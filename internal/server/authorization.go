package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/authn"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/tracing"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

// parallelChecks is how many verbs of one level are asked at the same time (P1).
const parallelChecks = 4

// decide sets up the chain of authorizers, the reviewers that ask it, and the authorization of callers of the review API.
func (s *Server) decide(ctx context.Context, config *rest.Config) error {
	identity, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name of this host: %w", err)
	}
	authorization := client(config, "authorization")
	authorization.Wrap(tracing.Client(s.tracer))
	s.chain, err = authz.NewChain(ctx, authz.Settings{
		File: s.options.AuthorizationConfig, TTL: s.options.DecisionCacheTTL,
		Cluster: authorization, Identity: identity, Observer: s.metrics,
	})
	if err != nil {
		return fmt.Errorf("--authorization-config: %w", err)
	}
	if s.options.AuthenticationConfig != "" {
		s.tokens, err = authn.New(ctx, authn.Settings{File: s.options.AuthenticationConfig, Identity: identity})
		if err != nil {
			return fmt.Errorf("--authentication-config: %w", err)
		}
	}
	s.reviewer = &admission.Reviewer{
		Schema:     s.schemas.Schema,
		Authorizer: s.chain.For,
		Limits:     fieldperm.Limits{MaxChecks: s.options.MaxChecks, Parallel: parallelChecks},
	}
	s.authorizer = &admission.AuthorizeReviewer{
		Allowed: func(group, resource, subresource string) bool {
			return s.resources.Allowlist().Has(group, resource, subresource)
		},
		Authorizer: s.chain.ForReview,
		Enforced:   s.interlock.Enforced,
		Canaries:   s.canaries,
	}
	s.validator = &admission.SchemaReviewer{Documents: s.schemas.Documents, Holders: s.holders}
	return nil
}

// holders returns the names of the roles that grant a verb on the resource of a kind.
func (s *Server) holders(kind runtimeschema.GroupKind, is func(verb string) bool) ([]string, error) {
	resource := webhooks.Resource(kind, uncovered.Plurals(s.schemas.Documents().Topologies))
	roles, err := s.chain.Holders(kind.Group, resource, is)
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
