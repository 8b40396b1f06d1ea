package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/internal/allowlist"
)

const (
	// settle is how long a change of the configuration may take to reach every kube-apiserver.
	settle = 2 * time.Second

	// firstRetry is the delay after the first failed round. The delay doubles up to the interval.
	firstRetry = 250 * time.Millisecond
)

// Reason is why the interlock is open, as a metric label.
type Reason string

// The reasons. A closed interlock has ReasonClosed, which is empty.
const (
	ReasonClosed               Reason = ""
	ReasonStarting             Reason = "starting"
	ReasonSettling             Reason = "settling"
	ReasonConfigurationUnread  Reason = "configuration_unread"
	ReasonConfigurationMissing Reason = "configuration_missing"
	ReasonConfigurationLoose   Reason = "configuration_loose"
	ReasonConfigurationDeleted Reason = "configuration_deleted"
	ReasonManifestsUnread      Reason = "manifests_unread"
	ReasonManifestsLoose       Reason = "manifests_loose"
	ReasonManifestsChanged     Reason = "manifests_changed"
	ReasonManifestsNotLoaded   Reason = "manifests_not_loaded"
	ReasonMetricsUnread        Reason = "metrics_unread"
	ReasonServersUnknown       Reason = "servers_unknown"
	ReasonCanaryNotEnforced    Reason = "canary_not_enforced"
	ReasonCanaryError          Reason = "canary_error"
	ReasonStopping             Reason = "stopping"
	// ReasonResource means that a canary on one resource passed, while the interlock is closed for other resources.
	ReasonResource Reason = "resource"
)

// Config configures an Interlock. CA and Observe are optional. One of Configuration and Manifests is required.
type Config struct {
	Servers Servers
	// Configuration reads the current webhook configuration from the API server. It returns nil if there is none. A nil func means
	// that the configuration is a static manifest.
	Configuration func(context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error)
	// CA returns the CA bundle that the webhook must trust. If CA is nil or returns nothing, any bundle is accepted.
	CA func() []byte
	// Manifests are the files of the control plane, if the configuration is a static manifest.
	Manifests *Manifests
	Prober    *Prober
	// Resources returns how the cluster serves a resource.
	Resources func(group, resource string) (allowlist.Served, bool)
	// Interval is the time between rounds. A proof is valid for two intervals.
	Interval time.Duration
	Clock    clock.Clock
	// Observe is called when the interlock opens or closes, when the reason for being open changes, and when a canary on a single
	// resource passed. It must not block.
	Observe func(reason Reason, err error)
}

// Interlock is open until it is proven that admission is enforced. The zero Interlock stays open.
type Interlock struct {
	config  Config
	trigger chan struct{}
	state   atomic.Pointer[state]
	// epoch counts openings and changes of the servers. A proof that started in an earlier epoch is invalid.
	epoch atomic.Uint64

	// mu guards the fields below, and every change of state and epoch.
	mu sync.Mutex
	// identity is the identity of the last configuration seen. notBefore is the time when that configuration has settled.
	identity  string
	notBefore time.Time
	// failed are the servers on which an error of the webhook was seen to stop a write since the interlock opened.
	failed map[string]bool
	// looking is held while the files are read, so that results are stored in the order of the reads.
	looking sync.Mutex
	// files is the last reading of Manifests. loaded is the last reading of what each server has loaded.
	files  files
	loaded map[string]reading

	resources resources
}

// state is immutable; a change replaces it.
type state struct {
	reason Reason
	err    error
	// until is when the proof expires. servers are the servers that it covers.
	until   time.Time
	servers []string
}

// New returns an open Interlock. It stays open until Run closes it.
func New(config Config) *Interlock {
	i := &Interlock{config: config, trigger: make(chan struct{}, 1)}
	i.resources.known, i.resources.failed = map[Target]*proof{}, map[string]uint64{}
	i.state.Store(&state{reason: ReasonStarting, err: errors.New("enforcement has not been proven yet: discovery comes first: if it stays so, see /readyz/discovery and the log")})
	return i
}

// errOpen is the only cause that users see.
var errOpen = errors.New("it is not proven that admission would look at the request; the administrator sees why in fieldperm's /readyz and log")

// Enforced returns nil if it is proven that admission looks at the request that a would authorize (A5). For a resource of an
// aggregated API server it may send canaries, and may take until ctx ends.
func (i *Interlock) Enforced(ctx context.Context, a *authorizationv1.ResourceAttributes) error {
	if err := i.Status(); err != nil {
		return errOpen
	}
	// Files in force cover every resource of the proven kube-apiservers, and no resource of an aggregated API server.
	served, known := i.config.Resources(a.Group, a.Resource)
	switch {
	case !known:
		return errOpen
	case !served.Aggregated:
		return nil
	case i.config.Configuration == nil:
		// Only the kube-apiserver that has a static manifest reads it; an aggregated API server does not.
		return errOpen
	}
	if err := i.proveResource(ctx, a); err != nil {
		return errOpen
	}
	// The proof of the resource is useless if the interlock opened meanwhile.
	if err := i.Status(); err != nil {
		return errOpen
	}
	return nil
}

// Status returns nil while the interlock is closed, else why it is open.
func (i *Interlock) Status() error {
	s := i.state.Load()
	switch {
	case s == nil:
		return errors.New("interlock: is not configured")
	case s.err != nil:
		return fmt.Errorf("interlock: is open: %w", s.err)
	case !i.config.Clock.Now().Before(s.until):
		return errors.New("interlock: is open: the last proof is too old: see the log for what holds up the next")
	}
	return nil
}

// Run proves enforcement at once, at every interval and after every change, until the context ends. Then it opens the interlock.
func (i *Interlock) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("interlock"))
	retry := firstRetry
	for {
		i.round(ctx)
		wait := i.config.Interval
		if i.Status() == nil {
			retry = firstRetry
			i.resources.prune(i.config.Clock.Now())
		} else {
			wait, retry = min(wait, max(retry, i.settling())), i.later(retry)
		}
		timer := i.config.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			i.open(ReasonStopping, errors.New("fieldperm is shutting down"))
			return
		case <-timer.C():
		case <-i.trigger:
			timer.Stop()
			retry = firstRetry
		}
	}
}

// later returns the delay after this one. It is bounded: doubling for minutes would overflow, and rounds would follow without a
// delay.
func (i *Interlock) later(retry time.Duration) time.Duration { return min(2*retry, i.config.Interval) }

// settling returns how long the configuration still takes to settle.
func (i *Interlock) settling() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.notBefore.Sub(i.config.Clock.Now())
}

// ConfigurationChanged must be called with every state of the configuration that is seen, and with nil when it is gone. A state
// other than the proven one opens the interlock before it returns.
func (i *Interlock) ConfigurationChanged(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	if reason, err := i.static(configuration); err != nil {
		i.open(reason, err)
	}
	i.seen(configuration)
	i.again()
}

// ServersChanged must be called when kube-apiservers may have been added or removed. A server that is not proven opens the
// interlock before it returns.
func (i *Interlock) ServersChanged() {
	servers, err := i.config.Servers()
	i.mu.Lock()
	current := i.state.Load()
	if err != nil || current.err == nil && slices.ContainsFunc(servers, func(s Server) bool { return !slices.Contains(current.servers, s.Address) }) {
		i.mustOpen(ReasonServersUnknown, errors.New("there is a kube-apiserver that is not proven yet"))
	} else {
		// The current round may have listed the servers before the change, so its result does not cover a new server.
		i.epoch.Add(1)
		if current.err == nil {
			// A server that left is removed: if its address comes back, it may be another server.
			i.store(&state{until: current.until, servers: Addresses(servers)})
		}
		i.left(Addresses(servers))
	}
	i.mu.Unlock()
	i.again()
}

func (i *Interlock) again() {
	select {
	case i.trigger <- struct{}{}:
	default:
	}
}

// seen records the identity of a configuration. A new one must settle.
func (i *Interlock) seen(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	identity := ""
	if configuration != nil {
		identity = fmt.Sprintf("%s/%d", configuration.UID, configuration.Generation)
	}
	i.mu.Lock()
	differs := identity != i.identity
	if differs {
		i.identity, i.notBefore = identity, i.config.Clock.Now().Add(settle)
	}
	i.mu.Unlock()
	if differs && i.state.Load().err == nil {
		i.open(ReasonSettling, errors.New("the webhook configuration has changed and is proven anew"))
	}
}

// open opens the interlock before it returns, even if a round is in progress.
func (i *Interlock) open(reason Reason, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mustOpen(reason, err)
}

// mustOpen opens the interlock. The caller holds mu.
func (i *Interlock) mustOpen(reason Reason, err error) {
	i.epoch.Add(1)
	i.failed = nil
	for address, last := range i.loaded {
		i.loaded[address] = last.old()
	}
	i.store(&state{reason: reason, err: err})
}

// store replaces the state and calls Observe if it differs. The caller holds mu.
func (i *Interlock) store(next *state) {
	before := i.state.Swap(next)
	if i.config.Observe != nil && (before.reason != next.reason || (before.err == nil) != (next.err == nil) || before.err != nil && next.err != nil && before.err.Error() != next.err.Error()) {
		i.config.Observe(next.reason, next.err)
	}
}

// round runs all proofs once, then closes or opens the interlock.
func (i *Interlock) round(ctx context.Context) {
	started := i.config.Clock.Now()
	i.lookAtFiles()
	i.mu.Lock()
	epoch := i.epoch.Load()
	i.mu.Unlock()

	servers, reason, err := i.prove(ctx)
	if ctx.Err() != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case err != nil:
		i.mustOpen(reason, err)
		return
	case epoch != i.epoch.Load():
		// The interlock opened during the round. Another round has been requested.
		return
	case started.Before(i.notBefore):
		i.mustOpen(ReasonSettling, errors.New("the webhook configuration is new: it is given time to reach every kube-apiserver"))
		return
	}
	i.failed = map[string]bool{}
	for _, server := range servers {
		i.failed[server] = true
	}
	i.store(&state{until: started.Add(2 * i.config.Interval), servers: servers})
}

// prove returns the addresses of the servers that enforce, or the reason why enforcement is not proven on all servers.
func (i *Interlock) prove(ctx context.Context) ([]string, Reason, error) {
	if i.config.Configuration != nil {
		readCtx, cancel := context.WithTimeout(ctx, canaryTimeout)
		defer cancel()
		configuration, err := i.config.Configuration(readCtx)
		if err != nil {
			return nil, ReasonConfigurationUnread, fmt.Errorf("webhook configuration: cannot be read: see that the API server answers and that fieldperm may get it, which rbac.yaml of fieldperm-gen manifests grants (%w)", err)
		}
		i.seen(configuration)
		if reason, err := i.static(configuration); err != nil {
			return nil, reason, err
		}
	}
	if i.config.Manifests != nil || i.config.Configuration == nil {
		if reason, err := i.filesEnforce(); err != nil {
			return nil, reason, err
		}
	}
	servers, err := i.config.Servers()
	if err != nil {
		return nil, ReasonServersUnknown, err
	}
	if len(servers) == 0 {
		return nil, ReasonServersUnknown, errors.New("no kube-apiserver is known")
	}
	if err := everywhere(ctx, servers, func(ctx context.Context, server Server) error {
		if err := i.config.Prober.Prove(ctx, server, updateCanary(), nil, i.mode(server)); err != nil {
			return err
		}
		return i.config.Prober.Prove(ctx, server, createCanary(), map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": Name, "namespace": createCanary().Namespace},
		}, ModeDeny)
	}); err != nil {
		if errors.Is(err, errPassed) {
			return nil, ReasonCanaryNotEnforced, err
		}
		return nil, ReasonCanaryError, err
	}
	// This proof is last because it is the most expensive one.
	if i.config.Manifests != nil {
		if reason, err := i.filesInForce(ctx, servers); err != nil {
			return nil, reason, err
		}
	}
	return Addresses(servers), ReasonClosed, nil
}

// mode returns the mode of the next canary to a server. ModeFail is used once for each server, because each use is a 500 in its
// metrics.
func (i *Interlock) mode(server Server) Mode {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failed[server.Address] {
		return ModeDeny
	}
	return ModeFail
}

func (i *Interlock) static(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) (Reason, error) {
	var ca []byte
	if i.config.CA != nil {
		ca = i.config.CA()
	}
	err := Static(configuration, ca)
	switch {
	case err == nil:
		return ReasonClosed, nil
	case configuration == nil:
		return ReasonConfigurationMissing, err
	case configuration.DeletionTimestamp != nil:
		return ReasonConfigurationDeleted, err
	}
	return ReasonConfigurationLoose, err
}

// updateCanary returns the target of an update: an object that every kube-apiserver creates when it starts.
func updateCanary() Target {
	return Target{Operation: admissionv1.Update, Version: "v1", Resource: "configmaps", Namespace: "kube-system", Name: "extension-apiserver-authentication"}
}

func createCanary() Target {
	return Target{Operation: admissionv1.Create, Version: "v1", Resource: "configmaps", Namespace: "kube-system"}
}
