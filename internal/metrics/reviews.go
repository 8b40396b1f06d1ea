package metrics

import (
	"net/http"
	"time"

	"k8s.io/component-base/metrics"
)

// reviewMetrics are about the requests of API servers.
type reviewMetrics struct {
	total     *metrics.CounterVec
	decisions *metrics.CounterVec
	durations *metrics.HistogramVec
	checks    *metrics.HistogramVec
	inFlight  *metrics.GaugeVec
	noRoom    *metrics.Counter
	refusals  *metrics.Counter
}

func newReviewMetrics() reviewMetrics {
	return reviewMetrics{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "reviews_total", StabilityLevel: metrics.ALPHA,
			Help: "Requests answered, by endpoint (granular, uncovered, observed, tried, schemas, authorize) and result (allowed, denied, no_opinion, probe, refused, error).",
		}, []string{"endpoint", "result"}),
		decisions: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Name: "decisions_total", StabilityLevel: metrics.ALPHA,
			Help: "Decisions of admission, by endpoint (granular, uncovered), mode, which is what let the request in (generic, granular, uncovered, none), and result (allowed, denied).",
		}, []string{"endpoint", "mode", "result"}),
		durations: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "review_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "Time from the first byte of a request to its answer, in seconds, by endpoint.",
			Buckets: seconds(),
		}, []string{"endpoint"}),
		checks: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "review_checks", StabilityLevel: metrics.ALPHA,
			Help:    "Permission checks that one decision took, cached ones included, by endpoint.",
			Buckets: []float64{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32},
		}, []string{"endpoint"}),
		inFlight: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: namespace, Name: "reviews_in_flight", StabilityLevel: metrics.ALPHA,
			Help: "Requests that are being answered, by endpoint.",
		}, []string{"endpoint"}),
		noRoom: metrics.NewCounter(&metrics.CounterOpts{
			Namespace: namespace, Name: "reviews_without_room_total", StabilityLevel: metrics.ALPHA,
			Help: "Requests refused with 429 before they were read, because the bodies that are held take all the memory that there is for them.",
		}),
		refusals: metrics.NewCounter(&metrics.CounterOpts{
			Namespace: namespace, Name: "observed_refusals_total", StabilityLevel: metrics.ALPHA,
			Help: "Observed updates that would have been refused without the generic permission. Only observations with the action Warn are counted.",
		}),
	}
}

func (r reviewMetrics) register(registry metrics.KubeRegistry) {
	registry.MustRegister(r.total, r.decisions, r.durations, r.checks, r.inFlight, r.noRoom, r.refusals)
}

// Review counts one response. checks is the number of verbs that a decision took. The histogram of checks has only decisions, no
// errors.
func (m *Metrics) Review(endpoint, result string, decided bool, checks int, took time.Duration) {
	m.reviews.total.WithLabelValues(endpoint, result).Inc()
	m.reviews.durations.WithLabelValues(endpoint).Observe(took.Seconds())
	if decided {
		m.reviews.checks.WithLabelValues(endpoint).Observe(float64(checks))
	}
}

// Decision counts one decision of admission. mode is the mode that allowed the request, "" if it was not allowed.
func (m *Metrics) Decision(endpoint, mode, result string) {
	if mode == "" {
		mode = "none"
	}
	m.reviews.decisions.WithLabelValues(endpoint, mode, result).Inc()
}

// NoRoom counts a request that was refused because the memory for bodies was used up.
func (m *Metrics) NoRoom() { m.reviews.noRoom.Inc() }

// ObservedRefusal counts an observed update that would have been refused.
func (m *Metrics) ObservedRefusal() { m.reviews.refusals.Inc() }

// Bodies shows the bytes of the request bodies in memory, and their limit.
func (m *Metrics) Bodies(most int64, held func() int64) {
	m.registry.RawMustRegister(
		metrics.NewGaugeFunc(&metrics.GaugeOpts{
			Namespace: namespace, Name: "review_bytes_in_flight", StabilityLevel: metrics.ALPHA,
			Help: "Bytes of the bodies of the reviews that are being answered.",
		}, func() float64 { return float64(held()) }),
		metrics.NewGaugeFunc(&metrics.GaugeOpts{
			Namespace: namespace, Name: "review_bytes_limit", StabilityLevel: metrics.ALPHA,
			Help: "Most bytes that the bodies of reviews may have at the same time.",
		}, func() float64 { return float64(most) }),
	)
}

// InFlight counts the requests that next is handling. A request ends also if next panics.
func (m *Metrics) InFlight(endpoint string, next http.Handler) http.Handler {
	gauge := m.reviews.inFlight.WithLabelValues(endpoint)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gauge.Inc()
		defer gauge.Dec()
		next.ServeHTTP(w, r)
	})
}
