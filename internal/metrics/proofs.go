package metrics

import (
	"slices"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
)

// Why enforcement is not proven: the values of the label reason. Any other reason counts as ReasonOther, so that the number of values
// stays bounded.
const (
	// ReasonStarting: nothing has been proven since the start.
	ReasonStarting = "starting"
	// ReasonConfigurationUnread: the webhook configuration could not be read.
	ReasonConfigurationUnread = "configuration_unread"
	// ReasonConfigurationMissing: there is no webhook configuration.
	ReasonConfigurationMissing = "configuration_missing"
	// ReasonConfigurationLoose: the webhook configuration does not enforce every write.
	ReasonConfigurationLoose = "configuration_loose"
	// ReasonConfigurationDeleted: the webhook configuration is being deleted and waits for its release.
	ReasonConfigurationDeleted = "configuration_deleted"
	// ReasonConfigurationChanged: the webhook configuration has changed and is proven anew.
	ReasonConfigurationChanged = "configuration_changed"
	// ReasonConfigurationNotLoaded: a kube-apiserver has not loaded the webhook configuration as it is stored.
	ReasonConfigurationNotLoaded = "configuration_not_loaded"
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
	// ReasonProbeNotEnforced: a kube-apiserver allowed a probe.
	ReasonProbeNotEnforced = "probe_not_enforced"
	// ReasonProbeError: a probe ended without a result.
	ReasonProbeError = "probe_error"
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
		ReasonStarting, ReasonConfigurationUnread, ReasonConfigurationMissing, ReasonConfigurationLoose, ReasonConfigurationDeleted, ReasonConfigurationChanged, ReasonConfigurationNotLoaded,
		ReasonManifestsUnread, ReasonManifestsLoose, ReasonManifestsChanged, ReasonManifestsNotLoaded, ReasonMetricsUnread,
		ReasonServersUnknown, ReasonWatchEnded, ReasonProbeNotEnforced, ReasonProbeError, ReasonExpired, ReasonStopping, ReasonOther,
	}
}

// How a probe ended: the values of the label result.
const (
	// ProbeEnforced: fieldperm's /admit refused it.
	ProbeEnforced = "enforced"
	// ProbeNotEnforced: the API server allowed it.
	ProbeNotEnforced = "not_enforced"
	// ProbeError: it proved nothing.
	ProbeError = "error"
)

// proofMetrics are about the proof that admission is enforced (A5).
type proofMetrics struct {
	isProven    *metrics.Gauge
	reasons     *metrics.GaugeVec
	transitions *metrics.CounterVec
	probes      *metrics.CounterVec
	probeTime   *metrics.HistogramVec
	resources   *metrics.Gauge
	uncovered   *metrics.GaugeVec
	state       *proofState
}

// proofState is the state that the gauges show. It is stored so that each transition is counted once.
type proofState struct {
	mu       sync.Mutex
	isProven bool
	reason   string
	isStill  func() bool
	servers  map[string]struct{}
}

func newProofMetrics() proofMetrics {
	return proofMetrics{
		isProven: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: namespace, Name: "enforcement_proven", StabilityLevel: metrics.ALPHA,
			Help: "1 while admission is proven on every kube-apiserver, so that holders of granular are let through; else 0.",
		}),
		reasons: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: namespace, Name: "enforcement_not_proven_reason", StabilityLevel: metrics.ALPHA,
			Help: "1 for the reason for which enforcement is not proven, 0 for all others, by reason.",
		}, []string{"reason"}),
		transitions: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "enforcement_transitions_total", StabilityLevel: metrics.ALPHA,
			Help: "Times that enforcement became proven or not proven, by which (proven, not_proven).",
		}, []string{"to"}),
		probes: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "probes_total", StabilityLevel: metrics.ALPHA,
			Help: "Probe requests, by kube-apiserver and result: enforced (admission refused it), not_enforced (admission did not see it), error (it proved nothing).",
		}, []string{"server", "result"}),
		probeTime: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "probe_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help: "Time of one probe request, in seconds, by kube-apiserver.", Buckets: seconds(),
		}, []string{"server"}),
		resources: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: namespace, Name: "resource_proofs", StabilityLevel: metrics.ALPHA,
			Help: "Objects of aggregated API groups that a probe of their own has proven.",
		}),
		uncovered: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: namespace, Name: "uncovered_configuration_applied", StabilityLevel: metrics.ALPHA,
			Help: "1 if the rules of the uncovered webhook are those of the schemas in force, 0 if the last attempt to write them failed; absent where fieldperm does not keep them.",
		}, nil),
		state: &proofState{reason: ReasonStarting, servers: map[string]struct{}{}},
	}
}

func (p proofMetrics) register(registry metrics.KubeRegistry) {
	registry.MustRegister(p.isProven, p.reasons, p.transitions, p.probes, p.probeTime, p.resources, p.uncovered)
}

// start shows the zero state. Counters start at 0, so that Prometheus sees their first increase.
func (p proofMetrics) start() {
	p.transitions.WithLabelValues(notProven).Add(0)
	p.transitions.WithLabelValues(proven).Add(0)
	p.show()
}

// show sets the gauges. It is also called before each scrape, because a proof expires without an event.
func (p proofMetrics) show() {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	isProven, reason := p.state.isProven, p.state.reason
	if isProven && p.state.isStill != nil && !p.state.isStill() {
		isProven, reason = false, ReasonExpired
	}
	if !slices.Contains(Reasons(), reason) {
		reason = ReasonOther
	}
	for _, known := range Reasons() {
		p.reasons.WithLabelValues(known).Set(truth(!isProven && known == reason))
	}
	p.isProven.Set(truth(isProven))
}

// The values of the label to.
const (
	proven    = "proven"
	notProven = "not_proven"
)

// Enforcement records whether enforcement is proven. reason is one of Reasons; it is ignored while it is. The same
// state again is not a transition.
func (m *Metrics) Enforcement(isProven bool, reason string) {
	m.proofs.set(isProven, reason)
	m.proofs.show()
}

func (p proofMetrics) set(isProven bool, reason string) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	if isProven != p.state.isProven {
		to := notProven
		if isProven {
			to = proven
		}
		p.transitions.WithLabelValues(to).Inc()
	}
	p.state.isProven, p.state.reason = isProven, reason
}

// Proven sets the function that reports whether the proof is still valid. The function is called at every scrape, so that
// enforcement shows as not proven when its proof has expired. It must not call Metrics.
func (m *Metrics) Proven(isStill func() bool) {
	m.proofs.state.mu.Lock()
	defer m.proofs.state.mu.Unlock()
	m.proofs.state.isStill = isStill
}

// Probe counts one probe. server is the address of a kube-apiserver, result how the probe ended.
func (m *Metrics) Probe(server, result string, took time.Duration) {
	state := m.proofs.state
	state.mu.Lock()
	defer state.mu.Unlock()
	if _, known := state.servers[server]; !known {
		state.servers[server] = struct{}{}
		for _, end := range []string{ProbeEnforced, ProbeNotEnforced, ProbeError} {
			m.proofs.probes.WithLabelValues(server, end).Add(0)
		}
	}
	m.proofs.probes.WithLabelValues(server, result).Inc()
	m.proofs.probeTime.WithLabelValues(server).Observe(took.Seconds())
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
		for _, end := range []string{ProbeEnforced, ProbeNotEnforced, ProbeError} {
			m.proofs.probes.Delete(map[string]string{"server": server, "result": end})
		}
		m.proofs.probeTime.Delete(map[string]string{"server": server})
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
