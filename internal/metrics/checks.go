package metrics

import (
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
)

// checkMetrics are about the questions that fieldperm asks its chain of authorizers.
type checkMetrics struct {
	total     *metrics.CounterVec
	durations *metrics.HistogramVec
	cache     *metrics.CounterVec
	entries   *cacheEntries
}

func newCheckMetrics() checkMetrics {
	return checkMetrics{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "checks_total", StabilityLevel: metrics.ALPHA,
			Help: "Permission checks, cached ones included, by result (allowed, denied, error, canceled: the caller stopped waiting).",
		}, []string{"result"}),
		durations: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "check_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "Time of a permission check that an authorizer was asked for by a round trip, retries included, in seconds, by result (allowed, denied, error).",
			Buckets: seconds(),
		}, []string{"result"}),
		cache: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "check_cache_total", StabilityLevel: metrics.ALPHA,
			Help: "Permission checks, by where the answer is from: hit (kept from an earlier one), miss (an authorizer was asked by a round trip), shared (the same check was under way), local (decided in process).",
		}, []string{"result"}),
		entries: newCacheEntries(),
	}
}

func (c checkMetrics) register(registry metrics.KubeRegistry) {
	registry.MustRegister(c.total, c.durations, c.cache)
	registry.CustomMustRegister(c.entries)
}

// Check counts one result that a caller received or gave up on.
func (m *Metrics) Check(result string) { m.checks.total.WithLabelValues(result).Inc() }

// CheckFrom counts the source of an answer: hit, miss, shared or local.
func (m *Metrics) CheckFrom(source string) { m.checks.cache.WithLabelValues(source).Inc() }

// CheckTook records the time of a check that asked an authorizer by a round trip, retries included.
func (m *Metrics) CheckTook(result string, took time.Duration) {
	m.checks.durations.WithLabelValues(result).Observe(took.Seconds())
}

// CacheEntries sets the function that returns how many decisions the cache of each authorizer holds, by name. The function is
// called at every scrape, and must not call Metrics.
func (m *Metrics) CacheEntries(count func() map[string]int) { m.checks.entries.count.Store(&count) }

// cacheEntries collects one gauge for each cache that exists at the time of the scrape.
type cacheEntries struct {
	metrics.BaseStableCollector
	desc  *metrics.Desc
	count atomic.Pointer[func() map[string]int]
}

func newCacheEntries() *cacheEntries {
	return &cacheEntries{desc: metrics.NewDesc(metrics.BuildFQName(namespace, "", "decision_cache_entries"),
		"Answers to permission checks that are kept, by the name of the authorizer that gave them.", []string{"name"}, nil, metrics.ALPHA, "")}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *cacheEntries) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- c.desc }

// CollectWithStability implements metrics.StableCollector.
func (c *cacheEntries) CollectWithStability(ch chan<- metrics.Metric) {
	count := c.count.Load()
	if count == nil {
		return
	}
	for name, n := range (*count)() {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(n), name)
	}
}
