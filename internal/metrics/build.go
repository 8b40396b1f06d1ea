package metrics

import (
	"crypto/x509"
	"encoding/pem"
	"math"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/version"
)

// registerBuildInfo adds a metric whose value is always 1. Its labels describe the build.
func registerBuildInfo(registry metrics.KubeRegistry) {
	info := metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: namespace, Name: "build_info", StabilityLevel: metrics.ALPHA,
		Help: "Always 1; what was built, by version, commit, version of Go and platform.",
	}, []string{"version", "commit", "go_version", "platform"})
	registry.MustRegister(info)
	built := version.Get()
	info.WithLabelValues(built.GitVersion, built.GitCommit, built.GoVersion, built.Platform).Set(1)
}

// ServingCertificate adds the expiry time of the serving certificate. current returns certificate and key in PEM. It is called at
// every scrape, so a renewed certificate shows at once. Call ServingCertificate once.
func (m *Metrics) ServingCertificate(current func() (certificate, key []byte)) {
	m.registry.RawMustRegister(metrics.NewGaugeFunc(&metrics.GaugeOpts{
		Namespace: namespace, Name: "serving_certificate_expiration_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "When the certificate that is served expires, in seconds since 1970; NaN if there is none.",
	}, func() float64 {
		certificate, _ := current()
		return expiry(certificate)
	}))
}

// expiry returns the expiry time of the first certificate, which is the server's.
func expiry(certificate []byte) float64 {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return math.NaN()
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return math.NaN()
	}
	return unix(parsed.NotAfter)
}
