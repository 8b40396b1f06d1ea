package metrics

import (
	"time"

	"k8s.io/component-base/metrics"
)

// schemaMetrics are about the permission schema in force.
type schemaMetrics struct {
	kinds        *metrics.GaugeVec
	faults       *metrics.Gauge
	lastCompile  *metrics.Gauge
	compileTime  *metrics.Histogram
	loadFailures *metrics.Counter
}

func newSchemaMetrics() schemaMetrics {
	return schemaMetrics{
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
			Help: "When the permission schema in force was compiled, in seconds since 1970; 0 while there is none.",
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
}

func (s schemaMetrics) register(registry metrics.KubeRegistry) {
	registry.MustRegister(s.kinds, s.faults, s.lastCompile, s.compileTime, s.loadFailures)
}

// Compiled records the state of the schema after a compile.
func (m *Metrics) Compiled(compiled, failed, faults int, at time.Time, took time.Duration) {
	m.schemas.kinds.WithLabelValues("compiled").Set(float64(compiled))
	m.schemas.kinds.WithLabelValues("failed").Set(float64(failed))
	m.schemas.faults.Set(float64(faults))
	m.schemas.lastCompile.Set(unix(at))
	m.schemas.compileTime.Observe(took.Seconds())
}

// LoadFailed counts a failure to read the sources.
func (m *Metrics) LoadFailed() { m.schemas.loadFailures.Inc() }
