package authn

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// samples returns the values of the metrics that have a label with a value, by metric name and its other relevant labels.
func samples(t *testing.T, label, value string) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name, has := family.GetName(), false
			for _, pair := range metric.GetLabel() {
				switch pair.GetName() {
				case label:
					has = pair.GetValue() == value
				case "status", "result":
					name += "{" + pair.GetValue() + "}"
				}
			}
			if has {
				out[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return out
}

func hash(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

func TestKEP3331_Metrics(t *testing.T) {
	first, second := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	s := settings(t, configuration(entry(first, named)))
	s.interval = 20 * time.Millisecond
	a, _ := start(t, s)
	const (
		reloads = "apiserver_authentication_config_controller_automatic_reloads_total"
		last    = "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds"
		info    = "apiserver_authentication_config_controller_last_config_info"
		latency = "apiserver_authentication_jwt_authenticator_latency_seconds"
		fetched = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds"
		keySet  = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info"
	)
	ours := func() map[string]float64 { return samples(t, "apiserver_id_hash", hash(s.Identity)) }
	if got := ours(); got[info] != 1 || got[reloads+"{success}"]+got[reloads+"{failure}"] != 0 {
		t.Errorf("at start metrics are %v", got)
	}
	// An issuer of an earlier test may have had the port of this one.
	before := samples(t, "jwt_issuer_hash", hash(first.URL()))
	accepted(t, a, sign(t, first, claims(), issuer.Token{}), "ann")
	refusedWith(t, a, sign(t, first, claims(), issuer.Token{Expired: true}), "is expired")
	if got := samples(t, "jwt_issuer_hash", hash(first.URL())); got[latency+"{success}"] != before[latency+"{success}"]+1 ||
		got[latency+"{failure}"] != before[latency+"{failure}"]+1 || got[fetched+"{success}"] == 0 || got[keySet] != 1 {
		t.Errorf("of the issuer metrics are %v", got)
	}
	if got := ours(); got[fetched+"{success}"] == 0 || got[keySet] != 1 {
		t.Errorf("after a fetch of keys metrics are %v", got)
	}
	if err := apply(t, a, entry(first, "\n  claimMappings: {username: {claim: sub, prefix: 'oidc:'}}")); err != nil {
		t.Fatal(err)
	}
	if got := samples(t, "jwt_issuer_hash", hash(first.URL())); got[keySet] != 1 {
		t.Errorf("of an issuer that is changed and stays metrics are %v", got)
	}
	write(t, s.File, "nothing")
	eventually(t, "a failure counts", func() bool { return ours()[reloads+"{failure}"] > 0 })
	if got := ours(); got[last+"{failure}"] == 0 || got[last+"{success}"] != 0 {
		t.Errorf("after a failure metrics are %v", got)
	}
	next := configuration(entry(second, named))
	write(t, s.File, next)
	eventually(t, "a success counts", func() bool { return ours()[reloads+"{success}"] == 1 })
	if got := ours(); got[last+"{success}"] == 0 {
		t.Errorf("after a success metrics are %v", got)
	}
	if got := samples(t, "hash", hash(next)); got[info] != 1 {
		t.Errorf("of the new file metrics are %v", got)
	}
	for name := range samples(t, "jwt_issuer_hash", hash(first.URL())) {
		if strings.HasPrefix(name, fetched) || strings.HasPrefix(name, keySet) {
			t.Errorf("metric %s is of an issuer that was dropped", name)
		}
	}
}
