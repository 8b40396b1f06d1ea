// Package metricstest uses every metric of fieldperm-webhook once, in each way that a server does, so
// that all of them can be scraped with the labels that they have. The generated list of metrics, and
// the tests of alerts, dashboard and guide, start from it: Sample has fieldperm's own metrics, Libraries those
// of Kubernetes' libraries. A test compares Sample with the metrics that internal/metrics declares.
package metricstest

import (
	"time"

	"github.com/fieldperm/fieldperm/internal/metrics"
)

// Sample returns metrics that have been used in every way that a server uses them.
func Sample() *metrics.Metrics {
	m := metrics.New()
	for _, endpoint := range []string{"granular", "uncovered", "observed", "tried", "schemas", "authorize"} {
		for _, result := range []string{"allowed", "denied", "no_opinion", "probe", "refused", "error"} {
			m.Review(endpoint, result, true, 1, time.Millisecond)
		}
		m.InFlight(endpoint, nil)
	}
	m.NoRoom()
	for _, result := range []string{"success", "failure", "error"} {
		m.Authenticated(result, time.Millisecond)
	}
	m.Provider("https://issuer.example.com", "id", true)
	m.Provider("https://issuer.example.com", "id", false)
	m.ObservedRefusal()
	m.Bodies(1, func() int64 { return 1 })
	for _, endpoint := range []string{"granular", "uncovered"} {
		for _, mode := range []string{"generic", "granular", "uncovered", "none"} {
			m.Decision(endpoint, mode, "allowed")
			m.Decision(endpoint, mode, "denied")
		}
	}
	for _, result := range []string{"allowed", "denied", "error"} {
		m.Check(result)
		m.CheckTook(result, time.Millisecond)
	}
	m.Check("canceled")
	for _, source := range []string{"hit", "miss", "shared", "local"} {
		m.CheckFrom(source)
	}
	m.CacheEntries(func() map[string]int { return map[string]int{"in-cluster-authorizer": 1} })
	m.Compiled(1, 0, 0, time.Unix(1, 0), time.Millisecond)
	m.LoadFailed()
	m.Enforcement(true, "")
	m.Probe("192.0.2.1:6443", metrics.ProbeEnforced, time.Millisecond)
	m.ResourceProofs(1)
	m.UncoveredApplied(true)
	m.ServingCertificate(func() ([]byte, []byte) { return nil, nil })
	return m
}
