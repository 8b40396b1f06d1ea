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
	"k8s.io/apiserver/pkg/apis/apiserver"
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

// Settings are what a Chain is made of.
type Settings struct {
	// File is the AuthorizationConfiguration. "" for the default chain: the SubjectAccessReview API alone.
	File string
	// TTL is how long the default chain keeps answers; 0 for not at all.
	TTL time.Duration
	// Cluster is for connectionInfo.type InClusterConfig and for what RBAC follows. Its rate limit does not
	// count.
	Cluster *rest.Config
	// Identity tells this process from others in metrics (apiserver_id_hash).
	Identity string
	// Observer is told of every check; nil for nobody.
	Observer Observer

	// Only tests set what follows.
	interval time.Duration // between two looks at the file; 0 for a minute
	newRoles func(*rest.Config) (roles, error)
}

// roles is RBAC in process.
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

// Chain is the chain of authorizers that fieldperm's checks go through. It is safe for concurrent use.
type Chain struct {
	settings Settings
	roles    roles           // nil without RBAC
	watcher  *reload.Watcher // nil without a file
	current  atomic.Pointer[generation]
}

// NewChain reads the file and puts it in force. A file with faults is an error (configfile.Problems).
// Nothing is asked over the network before Run.
func NewChain(ctx context.Context, s Settings) (*Chain, error) {
	if s.Observer == nil {
		s.Observer = nobody{}
	}
	if s.newRoles == nil {
		s.newRoles = newRoles
	}
	c := &Chain{settings: s}
	if s.File == "" {
		if err := c.begin(defaultChain(s.TTL), nil); err != nil {
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
	if err := c.begin(loaded.Configuration, data); err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	configmetrics.RegisterMetrics()
	configmetrics.RecordAuthorizationConfigLastConfigInfo(s.Identity, string(data))
	report(klog.FromContext(ctx), s.File, loaded)
	return c, nil
}

// begin puts the first configuration in force.
func (c *Chain) begin(configuration *apiserver.AuthorizationConfiguration, data []byte) error {
	if has(configuration, configfile.TypeRBAC) {
		if c.settings.Cluster == nil {
			return errNoCluster(string(configfile.TypeRBAC))
		}
		var err error
		if c.roles, err = c.settings.newRoles(c.settings.Cluster); err != nil {
			return fmt.Errorf("RBAC: %w", err)
		}
	}
	g, err := c.newGeneration(configuration, data)
	if err != nil {
		return err
	}
	c.current.Store(g)
	c.settings.Observer.CacheEntries(func() map[string]int { return c.current.Load().cacheEntries() })
	return nil
}

// Run follows the roles of the cluster, and the file and those that it names, until the context ends. It
// logs which of the webhooks in the file do not answer: they may come later than fieldperm.
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

// Ready is nil while RBAC has roles and bindings to answer from, and where there is no RBAC.
func (c *Chain) Ready() error {
	if c.roles == nil {
		return nil
	}
	return c.roles.Ready()
}

// Fault says why what the file has now is not in force, nil if it is.
func (c *Chain) Fault() error {
	if c.watcher == nil {
		return nil
	}
	return c.watcher.Fault()
}

// For returns an authorizer for the author of an admission request and the object that it is about. It
// asks the chain that is in force now, also if another is by the time it is asked: no review is decided
// half by one and half by the other.
func (c *Chain) For(req *admissionv1.AdmissionRequest) fieldperm.Authorizer {
	return forRequest(c.current.Load().shared, req)
}

// ForReview returns an authorizer for the user and the resource attributes of a SubjectAccessReview,
// which must have them, of the chain that is in force now.
func (c *Chain) ForReview(spec *authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer {
	return forReview(c.current.Load().shared, spec)
}

// Fixed returns a Chain of one authorizer that decides in process. It is as it is: nobody passes before
// it is asked. Run does nothing.
func Fixed(name string, a authorizer.Authorizer) *Chain {
	c := &Chain{settings: Settings{Observer: nobody{}}}
	c.current.Store(&generation{shared: newShared(&named{name: name, Authorizer: a}, flightTime, nobody{})})
	return c
}

// ErrNoRoles is that RBAC is not decided in process.
var ErrNoRoles = errors.New("no authorizer is of type RBAC")

// Holders returns the roles that grant a verb, as rbac.Live does, or ErrNoRoles.
func (c *Chain) Holders(group, resource string, is func(verb string) bool) ([]rbac.Holder, error) {
	if c.roles == nil {
		return nil, ErrNoRoles
	}
	return c.roles.Holders(group, resource, is)
}
