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

	"github.com/fieldperm/fieldperm/internal/discovery"
)

const (
	// settle is how long a change of the configuration may take to reach every kube-apiserver.
	settle = 2 * time.Second

	// firstRetry is how soon a round that failed is followed by the next; it doubles up to the interval.
	firstRetry = 250 * time.Millisecond
)

// Reason is why the interlock is open, as a metric has it.
type Reason string

// The reasons. A closed interlock has none.
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
	// ReasonResource is that a canary on one resource passed, while the interlock is closed for others.
	ReasonResource Reason = "resource"
)

// Config is what an Interlock proves, and how. CA and Observe may be left out, and one of Configuration and Manifests.
type Config struct {
	Servers Servers
	// Configuration reads the webhook configuration from the API server now, nil if there is none. A nil
	// func is that the configuration is a static manifest.
	Configuration func(context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error)
	// CA returns the bundle that the webhook is to trust; nil for any, or if it returns none.
	CA func() []byte
	// Manifests are the files of the control plane, where the configuration is a static manifest.
	Manifests *Manifests
	Prober    *Prober
	// Resources returns a resource as it is served.
	Resources func(group, resource string) (discovery.Served, bool)
	// Interval is the time between rounds. A proof is good for two.
	Interval time.Duration
	Clock    clock.Clock
	// Observe is told when the interlock opens or closes, is open for another reason, or when a canary on
	// a single resource passed. It must not block.
	Observe func(reason Reason, err error)
}

// Interlock is open until it is proven that admission is enforced. The zero Interlock is open for good.
type Interlock struct {
	config  Config
	trigger chan struct{}
	state   atomic.Pointer[state]
	// epoch counts what opens it, and changes of the servers: what began to be proven in an earlier one proves nothing.
	epoch atomic.Uint64

	// mu guards what follows, and every change of state and epoch.
	mu sync.Mutex
	// identity is that of the configuration last seen; notBefore is when it has settled.
	identity  string
	notBefore time.Time
	// failed are the servers on which the webhook's error was seen to stop a write since it opened.
	failed map[string]bool
	// looking is held while the files are read, so that what was read first is noted first.
	looking sync.Mutex
	// files are those of Manifests last seen. loaded is what each server was last seen to have loaded.
	files  files
	loaded map[string]reading

	resources resources
}

// state is replaced, never changed.
type state struct {
	reason Reason
	err    error
	// until is how long the proof is good, servers whom it is about.
	until   time.Time
	servers []string
}

// New returns an open Interlock. Nothing closes it before Run.
func New(config Config) *Interlock {
	i := &Interlock{config: config, trigger: make(chan struct{}, 1)}
	i.resources.known, i.resources.failed = map[Target]*proof{}, map[string]uint64{}
	i.state.Store(&state{reason: ReasonStarting, err: errors.New("enforcement has not been proven yet: discovery comes first: if it stays so, see /readyz/discovery and the log")})
	return i
}

// errOpen is all that users are told.
var errOpen = errors.New("it is not proven that admission would look at the request; the administrator sees why in fieldperm's /readyz and log")

// Enforced is nil if admission is proven to look at what an authorized request would do (A5). For what another server
// serves it may send canaries and take until ctx ends.
func (i *Interlock) Enforced(ctx context.Context, a *authorizationv1.ResourceAttributes) error {
	if err := i.Status(); err != nil {
		return errOpen
	}
	// What was read and is in force covers every resource of the servers that were proven, and no other's.
	served, known := i.config.Resources(a.Group, a.Resource)
	switch {
	case !known:
		return errOpen
	case !served.Aggregated:
		return nil
	case i.config.Configuration == nil:
		// A static manifest is read by its own kube-apiserver alone.
		return errOpen
	}
	if err := i.proveResource(ctx, a); err != nil {
		return errOpen
	}
	// What was proven meanwhile counts for nothing if the rest no longer holds.
	if err := i.Status(); err != nil {
		return errOpen
	}
	return nil
}

// Status is nil while the interlock is closed, else why it is open.
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

// Run proves at once, every interval and when something changes, until the context ends; then it
// opens.
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

// later is the retry after this one. It is bounded: doubled for minutes it would wrap around, and no
// round would wait for the next.
func (i *Interlock) later(retry time.Duration) time.Duration { return min(2*retry, i.config.Interval) }

// settling is how long the configuration takes to settle from now.
func (i *Interlock) settling() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.notBefore.Sub(i.config.Clock.Now())
}

// ConfigurationChanged is to be called with every state of the configuration that is seen, nil when it
// is gone. Anything but what is proven opens the interlock at once.
func (i *Interlock) ConfigurationChanged(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	if reason, err := i.static(configuration); err != nil {
		i.open(reason, err)
	}
	i.seen(configuration)
	i.again()
}

// ServersChanged is to be called when kube-apiservers may have come or gone. One that is not proven
// opens the interlock at once.
func (i *Interlock) ServersChanged() {
	servers, err := i.config.Servers()
	i.mu.Lock()
	current := i.state.Load()
	if err != nil || current.err == nil && slices.ContainsFunc(servers, func(s Server) bool { return !slices.Contains(current.servers, s.Address) }) {
		i.mustOpen(ReasonServersUnknown, errors.New("there is a kube-apiserver that is not proven yet"))
	} else {
		// What is under way may have asked for the servers before, and proves nothing of one that came since.
		i.epoch.Add(1)
		if current.err == nil {
			// One that has left and comes back may be another.
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

// seen notes the identity of a configuration. One that differs has to settle.
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

// open takes effect before it returns, whatever round is under way.
func (i *Interlock) open(reason Reason, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mustOpen(reason, err)
}

// mustOpen must be called with mu held.
func (i *Interlock) mustOpen(reason Reason, err error) {
	i.epoch.Add(1)
	i.failed = nil
	for address, last := range i.loaded {
		i.loaded[address] = last.old()
	}
	i.store(&state{reason: reason, err: err})
}

// store must be called with mu held.
func (i *Interlock) store(next *state) {
	before := i.state.Swap(next)
	if i.config.Observe != nil && (before.reason != next.reason || (before.err == nil) != (next.err == nil) || before.err != nil && next.err != nil && before.err.Error() != next.err.Error()) {
		i.config.Observe(next.reason, next.err)
	}
}

// round proves everything once and closes or opens the interlock.
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
		// It was opened meanwhile, and the next round is asked for.
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

// prove returns the addresses of the servers that enforce, or why it is not proven that all do.
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
	// Last, because it is the dearest.
	if i.config.Manifests != nil {
		if reason, err := i.filesInForce(ctx, servers); err != nil {
			return nil, reason, err
		}
	}
	return Addresses(servers), ReasonClosed, nil
}

// mode is that of the next canary to a server: the webhook's error is tried once on each. Each is a 500 in its metrics.
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

// updateCanary is an object that every kube-apiserver makes at its start.
func updateCanary() Target {
	return Target{Operation: admissionv1.Update, Version: "v1", Resource: "configmaps", Namespace: "kube-system", Name: "extension-apiserver-authentication"}
}

func createCanary() Target {
	return Target{Operation: admissionv1.Create, Version: "v1", Resource: "configmaps", Namespace: "kube-system"}
}
