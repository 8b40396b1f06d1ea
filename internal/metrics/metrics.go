package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const namespace = "fieldperm"

// Metrics are those of one server.
type Metrics struct {
	registry     metrics.KubeRegistry
	reviews      *metrics.CounterVec
	durations    *metrics.HistogramVec
	checks       *metrics.HistogramVec
	kinds        *metrics.GaugeVec
	faults       *metrics.Gauge
	lastCompile  *metrics.Gauge
	compileTime  *metrics.Histogram
	loadFailures *metrics.Counter
}

// New registers the metrics in a registry of their own.
func New() *Metrics {
	m := &Metrics{
		registry: metrics.NewKubeRegistry(),
		reviews: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "reviews_total", StabilityLevel: metrics.ALPHA,
			Help: "Requests answered, by endpoint (granular, uncovered, schemas, authorize) and result (allowed, denied, no_opinion, refused, error).",
		}, []string{"endpoint", "result"}),
		durations: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "review_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "Time from the first byte of a request to its answer, in seconds, by endpoint.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"endpoint"}),
		checks: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "review_checks", StabilityLevel: metrics.ALPHA,
			Help:    "Permission checks that one decision took, cached ones included, by endpoint.",
			Buckets: []float64{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32},
		}, []string{"endpoint"}),
		kinds: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: namespace, Name: "schema_kinds", StabilityLevel: metrics.ALPHA,
			Help: "Kinds of the permission schema in force, by state: compiled, or failed (refused to everyone who is asked about).",
		}, []string{"state"}),
		faults: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: namespace, Name: "schema_faults", StabilityLevel: metrics.ALPHA,
			Help: "Faults in the documents of the permission schema; for a faulty document the last good one is in force.",
		}),
		lastCompile: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: namespace, Name: "schema_last_compile_timestamp_seconds", StabilityLevel: metrics.ALPHA,
			Help: "When the permission schema in force was compiled, in seconds since 1970.",
		}),
		compileTime: metrics.NewHistogram(&metrics.HistogramOpts{
			Namespace: namespace, Name: "schema_compile_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help: "Time of one compile of the permission schema, in seconds.", Buckets: metrics.ExponentialBuckets(0.01, 2, 10),
		}),
		loadFailures: metrics.NewCounter(&metrics.CounterOpts{
			Namespace: namespace, Name: "schema_load_failures_total", StabilityLevel: metrics.ALPHA,
			Help: "Times that the sources of the permission schema could not be read from the API server.",
		}),
	}
	m.registry.MustRegister(m.reviews, m.durations, m.checks, m.kinds, m.faults, m.lastCompile, m.compileTime, m.loadFailures)
	return m
}

// Review counts one answer. checks is how many verbs a decision took; answers that are no decisions
// of admission are not in its histogram.
func (m *Metrics) Review(endpoint, result string, decided bool, checks int, took time.Duration) {
	m.reviews.WithLabelValues(endpoint, result).Inc()
	m.durations.WithLabelValues(endpoint).Observe(took.Seconds())
	if decided {
		m.checks.WithLabelValues(endpoint).Observe(float64(checks))
	}
}

// Compiled records the state of the schema after a compile.
func (m *Metrics) Compiled(compiled, failed, faults int, at time.Time, took time.Duration) {
	m.kinds.WithLabelValues("compiled").Set(float64(compiled))
	m.kinds.WithLabelValues("failed").Set(float64(failed))
	m.faults.Set(float64(faults))
	m.lastCompile.Set(float64(at.Unix()))
	m.compileTime.Observe(took.Seconds())
}

// LoadFailed counts a failure to read the sources.
func (m *Metrics) LoadFailed() { m.loadFailures.Inc() }

// Handler serves these metrics and those of the process and its libraries.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, legacyregistry.DefaultGatherer}, promhttp.HandlerOpts{})
}
