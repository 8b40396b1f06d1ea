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
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/internal/allowlist"
)

// Reason is why enforcement is not proven, as a metric label.
type Reason string

// The reasons. ReasonProven is empty: enforcement is proven.
const (
	ReasonProven               Reason = ""
	ReasonStarting             Reason = "starting"
	ReasonConfigurationUnread  Reason = "configuration_unread"
	ReasonConfigurationMissing Reason = "configuration_missing"
	ReasonConfigurationLoose   Reason = "configuration_loose"
	ReasonConfigurationDeleted Reason = "configuration_deleted"
	ReasonConfigurationChanged Reason = "configuration_changed"
	ReasonNotLoaded            Reason = "configuration_not_loaded"
	ReasonManifestsUnread      Reason = "manifests_unread"
	ReasonManifestsLoose       Reason = "manifests_loose"
	ReasonManifestsChanged     Reason = "manifests_changed"
	ReasonManifestsNotLoaded   Reason = "manifests_not_loaded"
	ReasonMetricsUnread        Reason = "metrics_unread"
	ReasonServersUnknown       Reason = "servers_unknown"
	ReasonWatchEnded           Reason = "watch_ended"
	ReasonProbeNotEnforced     Reason = "probe_not_enforced"
	ReasonProbeError           Reason = "probe_error"
	ReasonStopping             Reason = "stopping"
	// ReasonResource means that a probe on one resource passed, while enforcement is proven for other resources.
	ReasonResource Reason = "resource"
)

// Config configures an Interlock. CA and Observe are optional. One of Configuration and Manifests is required.
type Config struct {
	Servers Servers
	// Configuration reads the current webhook configuration from the API server. It returns nil if there is none. A nil func means
	// that the configuration is a static manifest.
	Configuration func(context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error)
	// Write replaces the version that Configuration returned. It is required with Configuration.
	Write func(context.Context, *admissionregistrationv1.ValidatingWebhookConfiguration) (*admissionregistrationv1.ValidatingWebhookConfiguration, error)
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
	// Observe is called when enforcement becomes proven or not proven, when the reason for the latter changes, and when a probe on a single
	// resource passed. It must not block.
	Observe func(reason Reason, err error)
}

// Interlock holds the proof that admission is enforced. For the zero Interlock enforcement is never proven.
type Interlock struct {
	config  Config
	trigger chan struct{}
	state   atomic.Pointer[state]
	// epoch counts withdrawals of the proof and changes of the servers. A proof that started in an earlier epoch is invalid.
	epoch atomic.Uint64

	// mu guards the fields below, and every change of state and epoch.
	mu sync.Mutex
	// version is that of the last configuration seen.
	version string
	// looking is held while the files are read, so that results are stored in the order of the reads.
	looking sync.Mutex
	// files is the last reading of Manifests. loaded has the last reading of each server.
	files  files
	loaded map[string]reading
	// watches has the watch of each server, which may have ended.
	watches map[string]*watch

	resources resources
	// Only Run uses these: renewed is a state that must be replaced.
	late    late
	spaced  spaced
	renewed string
	// loose says that a version which does not enforce was seen since the last state was written. It may have that state too.
	loose atomic.Bool
}

// state is immutable; a change replaces it.
type state struct {
	reason Reason
	err    error
	// until is when the proof expires. servers are the addresses that it covers, with the watches that were open all the time.
	until   time.Time
	servers map[string]*watch
}

// New returns an Interlock without a proof. Run proves enforcement.
func New(config Config) *Interlock {
	i := &Interlock{config: config, trigger: make(chan struct{}, 1), watches: map[string]*watch{}}
	i.resources.known, i.resources.failed = map[Target]*proof{}, map[string]uint64{}
	i.state.Store(&state{reason: ReasonStarting, err: errors.New("enforcement has not been proven yet: discovery comes first: if it stays so, see /readyz/discovery and the log")})
	return i
}

// errNotProven is the only cause that users see.
var errNotProven = errors.New("it is not proven that admission would look at the request; the administrator sees why in fieldperm's /readyz and log")

// Enforced returns nil if it is proven that admission looks at the request that a would authorize (A5). For a resource of an
// aggregated API server it may send probes, and may take until ctx ends.
func (i *Interlock) Enforced(ctx context.Context, a *authorizationv1.ResourceAttributes) error {
	s := i.state.Load()
	if i.status(s) != nil || operationOf(a) == "" {
		return errNotProven
	}
	// Files in force cover every resource of the proven kube-apiservers, and no resource of an aggregated API server.
	served, known := i.config.Resources(a.Group, a.Resource)
	switch {
	case !known:
		return errNotProven
	case !served.Aggregated:
		return nil
	case i.config.Configuration == nil:
		// Only the kube-apiserver that has a static manifest reads it; an aggregated API server does not.
		return errNotProven
	case operationOf(a) == admissionv1.Delete:
		// An aggregated API server may ignore dryRun, so that a probe could delete.
		return errNotProven
	}
	if err := i.proveResource(ctx, a); err != nil {
		return errNotProven
	}
	// The proof of the resource is useless if the proof of the kube-apiservers was withdrawn meanwhile.
	if err := i.Status(); err != nil {
		return errNotProven
	}
	return nil
}

// Status returns nil while enforcement is proven, else why it is not.
func (i *Interlock) Status() error { return i.status(i.state.Load()) }

// Servers returns how many kube-apiservers the last proof covers.
func (i *Interlock) Servers() int {
	if s := i.state.Load(); s != nil {
		return len(s.servers)
	}
	return 0
}

func (i *Interlock) status(s *state) error {
	switch {
	case s == nil:
		return errors.New("enforcement is not proven: is not configured")
	case s.err != nil:
		return fmt.Errorf("enforcement is not proven: %w", s.err)
	case !i.config.Clock.Now().Before(s.until):
		return errors.New("enforcement is not proven: the last proof is too old: see the log for what holds up the next")
	}
	if err := s.lasts(); err != nil {
		return fmt.Errorf("enforcement is not proven: %w", err)
	}
	return nil
}

// ConfigurationChanged must be called with every state of the configuration that is seen, and with nil when it is gone. A state
// other than the proven one withdraws the proof before it returns.
func (i *Interlock) ConfigurationChanged(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	if reason, err := i.static(configuration); err != nil {
		i.withdraw(reason, err)
	}
	i.mu.Lock()
	i.seenLocked(configuration)
	i.mu.Unlock()
	i.again()
}

// ServersChanged must be called when kube-apiservers may have been added or removed. A server that is not proven withdraws
// the proof before it returns.
func (i *Interlock) ServersChanged() {
	servers, err := i.config.Servers()
	i.mu.Lock()
	current := i.state.Load()
	if err != nil || current.err == nil && slices.ContainsFunc(servers, func(s Server) bool { return current.servers[s.Address] == nil }) {
		i.withdrawLocked(ReasonServersUnknown, errors.New("there is a kube-apiserver that is not proven yet"))
	} else {
		// The current round may have listed the servers before the change, so its result does not cover a new server.
		i.epoch.Add(1)
		if current.err == nil {
			// A server that left is removed: if its address comes back, it may be another server.
			next := *current
			next.servers = map[string]*watch{}
			for _, s := range servers {
				next.servers[s.Address] = current.servers[s.Address]
			}
			i.store(&next)
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

// seenLocked records the version of a configuration. What was proven of another one is void. The caller holds mu.
func (i *Interlock) seenLocked(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	version := ""
	if configuration != nil {
		version = fmt.Sprintf("%s-%d", configuration.UID, configuration.Generation)
	}
	if version == i.version {
		return
	}
	i.version = version
	if i.state.Load().err == nil {
		i.withdrawLocked(ReasonConfigurationChanged, errChanged)
		return
	}
	i.epoch.Add(1)
}

// withdraw withdraws the proof before it returns, even if a round is in progress.
func (i *Interlock) withdraw(reason Reason, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.withdrawLocked(reason, err)
}

// withdrawLocked is withdraw for a caller that holds mu.
func (i *Interlock) withdrawLocked(reason Reason, err error) {
	i.epoch.Add(1)
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

func (i *Interlock) static(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) (Reason, error) {
	var ca []byte
	if i.config.CA != nil {
		ca = i.config.CA()
	}
	err := Static(configuration, ca)
	switch {
	case err == nil:
		return ReasonProven, nil
	case configuration == nil:
		return ReasonConfigurationMissing, err
	case configuration.DeletionTimestamp != nil:
		return ReasonConfigurationDeleted, err
	}
	i.loose.Store(true)
	return ReasonConfigurationLoose, err
}
