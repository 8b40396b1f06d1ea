package authz

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

// Once returns a chain for one review, and the warnings about its file. The chain decides as that of NewChain, but follows nothing: Run is not
// called. RBAC is decided by the Roles and bindings of the time of the first question, which takes list on the four kinds.
func Once(ctx context.Context, s Settings) (*Chain, []string, error) {
	// The caller shows the warnings. Nothing is logged.
	ctx = klog.NewContext(ctx, klog.Logger{})
	if s.newRoles == nil {
		s.newRoles = newListedRoles
	}
	c, err := NewChain(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return c, c.current.Load().loaded.Warnings, nil
}

// listedRoles decides RBAC by objects that it lists at the first question. An error comes with Deny, as in rbac.Live.
type listedRoles struct {
	authorizer.Authorizer
	client kubernetes.Interface

	mu     sync.Mutex
	listed *rbac.Authorizer
}

func newListedRoles(cluster *rest.Config) (roles, error) {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, err
	}
	return &listedRoles{client: client}, nil
}

// Authorize returns Allow or NoOpinion, or Deny with an error.
func (l *listedRoles) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	ctx, cancel := context.WithTimeout(ctx, flightTime)
	defer cancel()
	of, err := l.read(ctx)
	if err != nil {
		return authorizer.DecisionDeny, "", fmt.Errorf("RBAC: %w: allow list on roles, clusterroles, rolebindings and clusterrolebindings", err)
	}
	return of.Authorize(ctx, a)
}

func (l *listedRoles) read(ctx context.Context) (*rbac.Authorizer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed != nil {
		return l.listed, nil
	}
	objects, err := rbac.List(ctx, l.client)
	if err != nil {
		return nil, err
	}
	l.listed, err = rbac.NewStored(*objects)
	return l.listed, err
}

// Run does nothing.
func (l *listedRoles) Run(ctx context.Context) { <-ctx.Done() }

// Ready returns nil.
func (l *listedRoles) Ready() error { return nil }

// Holders is for the webhook of schemas, which Once does not serve.
func (l *listedRoles) Holders(string, string, func(string) bool) ([]rbac.Holder, error) {
	return nil, ErrNoRoles
}
