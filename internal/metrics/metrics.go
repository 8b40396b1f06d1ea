package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const namespace = "fieldperm"

// Metrics are the metrics of one server.
type Metrics struct {
	registry metrics.KubeRegistry
	reviews  reviewMetrics
	checks   checkMetrics
	schemas  schemaMetrics
	proofs   proofMetrics

	authentication authenticationMetrics
}

// New registers the metrics in a new registry. Enforcement counts as not proven until Enforcement is called.
func New() *Metrics {
	m := &Metrics{
		registry: metrics.NewKubeRegistry(),
		reviews:  newReviewMetrics(),
		checks:   newCheckMetrics(),
		schemas:  newSchemaMetrics(),
		proofs:   newProofMetrics(),

		authentication: newAuthenticationMetrics(),
	}
	m.reviews.register(m.registry)
	m.checks.register(m.registry)
	m.schemas.register(m.registry)
	m.proofs.register(m.registry)
	m.authentication.register(m.registry)
	registerBuildInfo(m.registry)
	m.proofs.start()
	return m
}

// Gatherer returns a gatherer of these metrics and of those of the process and its libraries.
func (m *Metrics) Gatherer() prometheus.Gatherer {
	own := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		m.proofs.show()
		return m.registry.Gather()
	})
	return prometheus.Gatherers{own, legacyregistry.DefaultGatherer}
}

// Handler serves the metrics of Gatherer.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Gatherer(), promhttp.HandlerOpts{})
}

// seconds returns the histogram bounds for durations that a user's request waits for.
func seconds() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
}

// unix returns a time as Prometheus represents it.
func unix(at time.Time) float64 { return float64(at.Unix()) }
