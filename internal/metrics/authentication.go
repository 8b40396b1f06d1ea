package metrics

import (
	"crypto/sha256"
	"fmt"
	"time"

	"k8s.io/component-base/metrics"
)

// authenticationMetrics are about the callers of fieldperm and the issuers of their tokens.
type authenticationMetrics struct {
	durations *metrics.HistogramVec
	providers *metrics.GaugeVec
}

func newAuthenticationMetrics() authenticationMetrics {
	return authenticationMetrics{
		durations: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace, Name: "authentication_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "Time of the authentication of a caller, in seconds, by result: success, failure (no credentials), error (credentials that are not accepted).",
			Buckets: seconds(),
		}, []string{"result"}),
		// The name is that of KEP-3331. k8s.io/apiserver does not have the metric.
		providers: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: "apiserver", Subsystem: "authentication", Name: "jwt_authenticator_provider_status_timestamp_seconds", StabilityLevel: metrics.ALPHA,
			Help: "When the discovery document of an issuer was last read, split by result (success, failure), api server identity and jwt issuer.",
		}, []string{"result", "jwt_issuer_hash", "apiserver_id_hash"}),
	}
}

func (a authenticationMetrics) register(registry metrics.KubeRegistry) {
	registry.MustRegister(a.durations, a.providers)
}

// Authenticated records one authentication of a caller. result is success, failure or error.
func (m *Metrics) Authenticated(result string, took time.Duration) {
	m.authentication.durations.WithLabelValues(result).Observe(took.Seconds())
}

// Provider records that the discovery document of an issuer was read, or could not be.
func (m *Metrics) Provider(issuer, identity string, good bool) {
	result := "failure"
	if good {
		result = "success"
	}
	m.authentication.providers.WithLabelValues(result, hashed(issuer), hashed(identity)).SetToCurrentTime()
}

// ProviderGone drops what Provider has recorded of an issuer.
func (m *Metrics) ProviderGone(issuer, identity string) {
	for _, result := range []string{"success", "failure"} {
		m.authentication.providers.Delete(map[string]string{"result": result, "jwt_issuer_hash": hashed(issuer), "apiserver_id_hash": hashed(identity)})
	}
}

// hashed is the form in which k8s.io/apiserver has issuers and identities in labels.
func hashed(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
