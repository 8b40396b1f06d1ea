package metrics

import (
	"slices"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
)

// Why the interlock is open: the values of the label reason. Any other reason counts as ReasonOther, so that the number of values
// stays bounded.
const (
	// ReasonStarting: nothing has been proven since the start.
	ReasonStarting = "starting"
	// ReasonSettling: the configuration changed, API servers may not have it yet.
	ReasonSettling = "settling"
	// ReasonConfigurationUnread: the webhook configuration could not be read.
	ReasonConfigurationUnread = "configuration_unread"
	// ReasonConfigurationMissing: there is no webhook configuration.
	ReasonConfigurationMissing = "configuration_missing"
	// ReasonConfigurationLoose: the webhook configuration does not enforce every write.
	ReasonConfigurationLoose = "configuration_loose"
	// ReasonConfigurationDeleted: the webhook configuration is being deleted and waits for its release.
	ReasonConfigurationDeleted = "configuration_deleted"
	// ReasonServersUnknown: the kube-apiservers could not be listed, or there is none.
	ReasonServersUnknown = "servers_unknown"
	// ReasonWatchEnded: a kube-apiserver has ended the watch that is held open there, or answers none.
	ReasonWatchEnded = "watch_ended"
	// ReasonManifestsUnread: the static manifests or kube-apiserver's AuthorizationConfiguration could not be read.
	ReasonManifestsUnread = "manifests_unread"
	// ReasonManifestsLoose: the static manifests or the AuthorizationConfiguration do not enforce every write.
	ReasonManifestsLoose = "manifests_loose"
	// ReasonManifestsChanged: the files were changed, and it is not proven yet that the kube-apiservers have loaded them.
	ReasonManifestsChanged = "manifests_changed"
	// ReasonManifestsNotLoaded: a kube-apiserver has loaded files with another content.
	ReasonManifestsNotLoaded = "manifests_not_loaded"
	// ReasonMetricsUnread: a kube-apiserver did not report the hashes of its loaded files.
	ReasonMetricsUnread = "metrics_unread"
	// ReasonCanaryNotEnforced: a kube-apiserver allowed a canary.
	ReasonCanaryNotEnforced = "canary_not_enforced"
	// ReasonCanaryError: a canary ended without a result.
	ReasonCanaryError = "canary_error"
	// ReasonExpired: the last proof has expired. There is no event for this: it appears at a scrape, by Proven.
	ReasonExpired = "expired"
	// ReasonStopping: fieldperm is shutting down.
	ReasonStopping = "stopping"
	// ReasonOther: any other reason.
	ReasonOther = "other"
)

// Reasons returns all values of the label reason.
func Reasons() []string {
	return []string{
		ReasonStarting, ReasonSettling, ReasonConfigurationUnread, ReasonConfigurationMissing, ReasonConfigurationLoose, ReasonConfigurationDeleted,
		ReasonManifestsUnread, ReasonManifestsLoose, ReasonManifestsChanged, ReasonManifestsNotLoaded, ReasonMetricsUnread,
		ReasonServersUnknown, ReasonWatchEnded, ReasonCanaryNotEnforced, ReasonCanaryError, ReasonExpired, ReasonStopping, ReasonOther,
	}
}

// How a canary ended: the values of the label result.
const (
	// CanaryEnforced: fieldperm's /admit refused it.
	CanaryEnforced = "enforced"
	// CanaryNotEnforced: the API server allowed it.
	CanaryNotEnforced = "not_enforced"
	// CanaryError: it proved nothing.
	CanaryError = "error"
)

// proofMetrics are about the proof that admission is enforced (A5).
type proofMetrics struct {
	closed      *metrics.Gauge
	reasons     *metrics.GaugeVec
	transitions *metrics.CounterVec
	canaries    *metrics.CounterVec
	canaryTime  *metrics.HistogramVec
	resources   *metrics.Gauge
	uncovered   *metrics.GaugeVec
	state       *proofState
}

// proofState is the state that the gauges show. It is stored so that each transition is counted once.
type proofState struct {
	mu      sync.Mutex
	closed  bool
	reason  string
	proven  func() bool
	servers map[string]struct{}
}

func newProofMetrics() proofMetrics {
	return proofMetrics{
		closed: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: namespace, Name: "interlock_closed", StabilityLevel: metrics.ALPHA,
			Help: "1 while admission is proven on every kube-apiserver, so that holders of granular are let through; else 0.",
		}),
		reasons: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: namespace, Name: "interlock_open_reason", StabilityLevel: metrics.ALPHA,
			Help: "1 for the reason for which the interlock is open, 0 for all others, by reason.",
		}, []string{"reason"}),
		transitions: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "interlock_transitions_total", StabilityLevel: metrics.ALPHA,
			Help: "Times that the interlock changed, by what it changed to (open, closed).",
		}, []string{"to"}),
		canaries: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "canaries_total", StabilityLevel: metrics.ALPHA,
			Help: "Canary requests, by kube-apiserver and result: enforced (admission refused it), not_enforced (admission did not see it), error (it proved nothing).",
		}, []string{"server", "result"}),
		canaryTime: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "canary_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help: "Time of one canary request, in seconds, by kube-apiserver.", Buckets: seconds(),
		}, []string{"server"}),
		resources: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: namespace, Name: "resource_proofs", StabilityLevel: metrics.ALPHA,
			Help: "Objects of aggregated API groups that a canary of their own has proven.",
		}),
		uncovered: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: namespace, Name: "uncovered_configuration_applied", StabilityLevel: metrics.ALPHA,
			Help: "1 if the rules of the uncovered webhook are those of the schemas in force, 0 if the last attempt to write them failed; absent where fieldperm does not keep them.",
		}, nil),
		state: &proofState{reason: ReasonStarting, servers: map[string]struct{}{}},
	}
}

func (p proofMetrics) register(registry metrics.KubeRegistry) {
	registry.MustRegister(p.closed, p.reasons, p.transitions, p.canaries, p.canaryTime, p.resources, p.uncovered)
}

// start shows the zero state. Counters start at 0, so that Prometheus sees their first increase.
func (p proofMetrics) start() {
	p.transitions.WithLabelValues("open").Add(0)
	p.transitions.WithLabelValues("closed").Add(0)
	p.show()
}

// show sets the gauges. It is also called before each scrape, because a proof expires without an event.
func (p proofMetrics) show() {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	closed, reason := p.state.closed, p.state.reason
	if closed && p.state.proven != nil && !p.state.proven() {
		closed, reason = false, ReasonExpired
	}
	if !slices.Contains(Reasons(), reason) {
		reason = ReasonOther
	}
	for _, known := range Reasons() {
		p.reasons.WithLabelValues(known).Set(truth(!closed && known == reason))
	}
	p.closed.Set(truth(closed))
}

// Interlock records the state of the interlock. reason is one of Reasons; it is ignored while the interlock is closed. The same
// state again is not a transition.
func (m *Metrics) Interlock(closed bool, reason string) {
	m.proofs.set(closed, reason)
	m.proofs.show()
}

func (p proofMetrics) set(closed bool, reason string) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	if closed != p.state.closed {
		to := "open"
		if closed {
			to = "closed"
		}
		p.transitions.WithLabelValues(to).Inc()
	}
	p.state.closed, p.state.reason = closed, reason
}

// Proven sets the function that reports whether the proof is still valid. The function is called at every scrape, so that a closed
// interlock shows as open when its proof has expired. It must not call Metrics.
func (m *Metrics) Proven(proven func() bool) {
	m.proofs.state.mu.Lock()
	defer m.proofs.state.mu.Unlock()
	m.proofs.state.proven = proven
}

// Canary counts one canary. server is the address of a kube-apiserver, result how the canary ended.
func (m *Metrics) Canary(server, result string, took time.Duration) {
	state := m.proofs.state
	state.mu.Lock()
	defer state.mu.Unlock()
	if _, known := state.servers[server]; !known {
		state.servers[server] = struct{}{}
		for _, end := range []string{CanaryEnforced, CanaryNotEnforced, CanaryError} {
			m.proofs.canaries.WithLabelValues(server, end).Add(0)
		}
	}
	m.proofs.canaries.WithLabelValues(server, result).Inc()
	m.proofs.canaryTime.WithLabelValues(server).Observe(took.Seconds())
}

// Servers removes the series of all kube-apiservers except those at addresses, which are the current ones. Otherwise the series of
// former addresses would stay.
func (m *Metrics) Servers(addresses []string) {
	state := m.proofs.state
	state.mu.Lock()
	defer state.mu.Unlock()
	for server := range state.servers {
		if slices.Contains(addresses, server) {
			continue
		}
		delete(state.servers, server)
		for _, end := range []string{CanaryEnforced, CanaryNotEnforced, CanaryError} {
			m.proofs.canaries.Delete(map[string]string{"server": server, "result": end})
		}
		m.proofs.canaryTime.Delete(map[string]string{"server": server})
	}
}

// ResourceProofs records how many resources have a proof of their own.
func (m *Metrics) ResourceProofs(n int) { m.proofs.resources.Set(float64(n)) }

// UncoveredApplied records whether the rules of the uncovered webhook could be written.
func (m *Metrics) UncoveredApplied(ok bool) { m.proofs.uncovered.WithLabelValues().Set(truth(ok)) }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
