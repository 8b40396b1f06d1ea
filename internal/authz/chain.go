package authz

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	configmetrics "k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/configfile"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/reload"
)

// Settings configures NewChain.
type Settings struct {
	// File is the path of the AuthorizationConfiguration. "" selects the default chain, which asks the SubjectAccessReview API only.
	File string
	// TTL is how long the default chain caches decisions. 0 turns the cache off.
	TTL time.Duration
	// Cluster connects to the API server, for webhooks with connectionInfo.type InClusterConfig and for the informers of RBAC. Its
	// rate limit is ignored.
	Cluster *rest.Config
	// Identity identifies this process in metrics (apiserver_id_hash).
	Identity string
	// Observer receives every check. nil turns this off.
	Observer Observer

	// Only tests set the fields below.
	interval time.Duration // period between two reads of the file; 0 for a minute
	newRoles func(*rest.Config) (roles, error)
}

// roles decides RBAC in process.
type roles interface {
	authorizer.Authorizer
	Run(ctx context.Context)
	Ready() error
	Holders(group, resource string, is func(verb string) bool) ([]rbac.Holder, error)
}

func newRoles(cluster *rest.Config) (roles, error) {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, err
	}
	return rbac.NewLive(client)
}

// Chain is the chain of authorizers that decides fieldperm's checks. It is safe for concurrent use.
type Chain struct {
	settings Settings
	roles    roles           // nil if the chain has no RBAC authorizer
	watcher  *reload.Watcher // nil if Settings.File is ""
	current  atomic.Pointer[snapshot]
}

// NewChain reads the file and puts its configuration in force. If the file is not valid, the error is configfile.Problems. NewChain
// sends no request; Run does.
func NewChain(ctx context.Context, s Settings) (*Chain, error) {
	if s.Observer == nil {
		s.Observer = noObserver{}
	}
	if s.newRoles == nil {
		s.newRoles = newRoles
	}
	c := &Chain{settings: s}
	if s.File == "" {
		if err := c.begin(&configfile.Authorization{Configuration: defaultChain(s.TTL)}); err != nil {
			return nil, err
		}
		return c, nil
	}
	data, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("authorization configuration: %w: write one, or leave it out", err)
	}
	loaded, err := configfile.LoadAuthorization(s.File, data)
	if err != nil {
		return nil, err
	}
	c.watcher = reload.New(reload.Config{
		File: s.File, Interval: s.interval, Apply: c.apply,
		Observe: func(data []byte, err error) { c.observe(klog.FromContext(ctx), data, err) },
	}, data, loaded.Files)
	if err := c.begin(loaded); err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	configmetrics.RegisterMetrics()
	configmetrics.RecordAuthorizationConfigLastConfigInfo(s.Identity, string(data))
	report(klog.FromContext(ctx), s.File, loaded)
	return c, nil
}

// begin puts the first configuration in force.
func (c *Chain) begin(loaded *configfile.Authorization) error {
	if has(loaded.Configuration, configfile.TypeRBAC) {
		if c.settings.Cluster == nil {
			return errNoCluster(string(configfile.TypeRBAC))
		}
		var err error
		if c.roles, err = c.settings.newRoles(c.settings.Cluster); err != nil {
			return fmt.Errorf("RBAC: %w", err)
		}
	}
	first, err := c.newSnapshot(loaded)
	if err != nil {
		return err
	}
	c.current.Store(first)
	c.settings.Observer.CacheEntries(func() map[string]int { return c.current.Load().cacheEntries() })
	return nil
}

// Run follows the RBAC objects of the cluster, the configuration file and the files that it names, until the context ends. It logs
// the webhooks in the file that do not answer. These are no error, because they may start later than fieldperm.
func (c *Chain) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if c.roles != nil {
		running.Go(func() { c.roles.Run(ctx) })
	}
	if c.watcher != nil {
		running.Go(func() { c.askAtStart(ctx) })
		running.Go(func() { c.watcher.Run(ctx) })
	}
	<-ctx.Done()
}

// Ready returns nil if RBAC has loaded its roles and bindings, or if the chain has no RBAC authorizer.
func (c *Chain) Ready() error {
	if c.roles == nil {
		return nil
	}
	return c.roles.Ready()
}

// Fault returns why the current content of the file is not in force. It returns nil if it is in force.
func (c *Chain) Fault() error {
	if c.watcher == nil {
		return nil
	}
	return c.watcher.Fault()
}

// For returns an authorizer for the author of an admission request and the object of the request. The authorizer always asks the
// chain that is in force now, even if a reload replaces the chain later: one chain decides the whole review.
func (c *Chain) For(req *admissionv1.AdmissionRequest) fieldperm.Authorizer {
	return forRequest(c.current.Load(), req)
}

// ForReview returns an authorizer for the user and the resource attributes of a SubjectAccessReview. The spec must have resource
// attributes. The authorizer always asks the chain that is in force now, as with For.
func (c *Chain) ForReview(spec *authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer {
	return forReview(c.current.Load(), spec)
}

// Fixed returns a Chain of one authorizer that decides in process. No authorizer precedes it: system:masters has no privilege here.
// Run does nothing.
func Fixed(name string, a authorizer.Authorizer) *Chain {
	c := &Chain{}
	c.current.Store(&snapshot{chain: &named{a, name}, observer: noObserver{}})
	return c
}

// ErrNoRoles means that the chain does not decide RBAC in process.
var ErrNoRoles = errors.New("no authorizer is of type RBAC")

// Holders returns the roles that grant a verb, as rbac.Live does. The error is ErrNoRoles if no authorizer is of type RBAC.
func (c *Chain) Holders(group, resource string, is func(verb string) bool) ([]rbac.Holder, error) {
	if c.roles == nil {
		return nil, ErrNoRoles
	}
	return c.roles.Holders(group, resource, is)
}
