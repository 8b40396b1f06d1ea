package metrics

import (
	"time"

	"k8s.io/component-base/metrics"
)

// checkMetrics are about the questions that fieldperm asks by SubjectAccessReview.
type checkMetrics struct {
	total     *metrics.CounterVec
	durations *metrics.HistogramVec
	cache     *metrics.CounterVec
}

func newCheckMetrics() checkMetrics {
	return checkMetrics{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "checks_total", StabilityLevel: metrics.ALPHA,
			Help: "Permission checks, cached ones included, by result (allowed, denied, error, canceled: whoever asked gave up).",
		}, []string{"result"}),
		durations: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "check_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "Time of a permission check that the API server was asked for, retries included, in seconds, by result (allowed, denied, error).",
			Buckets: seconds(),
		}, []string{"result"}),
		cache: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "check_cache_total", StabilityLevel: metrics.ALPHA,
			Help: "Permission checks, by where the answer is from: hit (kept from an earlier one), miss (the API server was asked), shared (the same check was under way).",
		}, []string{"result"}),
	}
}

func (c checkMetrics) register(registry metrics.KubeRegistry) {
	registry.MustRegister(c.total, c.durations, c.cache)
}

// Check counts one answer that somebody waited for.
func (m *Metrics) Check(result string) { m.checks.total.WithLabelValues(result).Inc() }

// CheckFrom counts where an answer is from: hit, miss or shared.
func (m *Metrics) CheckFrom(source string) { m.checks.cache.WithLabelValues(source).Inc() }

// CheckTook records how long the API server took to answer, retries included.
func (m *Metrics) CheckTook(result string, took time.Duration) {
	m.checks.durations.WithLabelValues(result).Observe(took.Seconds())
}
