package metrics

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/testutil"
)

// scrape returns fieldperm's metric families by name.
func scrape(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), namespace+"_") {
			out[family.GetName()] = family
		}
	}
	return out
}

func expect(t *testing.T, m *Metrics, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestA5_EnforcementIsNotProvenByDefault(t *testing.T) {
	m := New()
	open := func(reason string) float64 {
		for _, metric := range scrape(t, m)["fieldperm_enforcement_not_proven_reason"].GetMetric() {
			if metric.GetLabel()[0].GetValue() == reason {
				return metric.GetGauge().GetValue()
			}
		}
		t.Fatalf("reason %q is not shown", reason)
		return 0
	}
	sum := func() (n float64) {
		for _, reason := range Reasons() {
			n += open(reason)
		}
		return n
	}
	expect(t, m, `# HELP fieldperm_enforcement_proven [ALPHA] 1 while admission is proven on every kube-apiserver, so that holders of granular are let through; else 0.
# TYPE fieldperm_enforcement_proven gauge
fieldperm_enforcement_proven 0
`, "fieldperm_enforcement_proven")
	if open(ReasonStarting) != 1 || sum() != 1 {
		t.Error("at the start it is not open because it starts")
	}
	m.Enforcement(true, "")
	m.Enforcement(true, "")
	if sum() != 0 {
		t.Error("closed, and a reason for being open")
	}
	m.Enforcement(false, ReasonProbeNotEnforced)
	m.Enforcement(false, ReasonExpired)
	if open(ReasonExpired) != 1 || sum() != 1 {
		t.Error("the last reason is not the one that is shown")
	}
	m.Enforcement(false, "dial tcp 10.0.0.1:6443: connection refused")
	if open(ReasonOther) != 1 || sum() != 1 {
		t.Error("a free text is not shown as other")
	}
	if n := len(scrape(t, m)["fieldperm_enforcement_not_proven_reason"].GetMetric()); n != len(Reasons()) {
		t.Errorf("%d reasons are shown, want %d", n, len(Reasons()))
	}
	expect(t, m, `# HELP fieldperm_enforcement_transitions_total [ALPHA] Times that enforcement became proven or not proven, by which (proven, not_proven).
# TYPE fieldperm_enforcement_transitions_total counter
fieldperm_enforcement_transitions_total{to="proven"} 1
fieldperm_enforcement_transitions_total{to="not_proven"} 1
`, "fieldperm_enforcement_transitions_total")
}

func TestA5_ProofThatRanOutShowsAsOpen(t *testing.T) {
	m := New()
	holds := true
	m.Proven(func() bool { return holds })
	closed := func() float64 {
		return scrape(t, m)["fieldperm_enforcement_proven"].GetMetric()[0].GetGauge().GetValue()
	}
	expired := func() float64 {
		for _, metric := range scrape(t, m)["fieldperm_enforcement_not_proven_reason"].GetMetric() {
			if metric.GetLabel()[0].GetValue() == ReasonExpired {
				return metric.GetGauge().GetValue()
			}
		}
		return -1
	}
	if closed() != 0 || expired() != 0 {
		t.Error("it is closed before it was said to be")
	}
	m.Enforcement(true, "")
	for _, holds = range []bool{true, false, true} {
		if closed() != truth(holds) || expired() != truth(!holds) {
			t.Errorf("proof holds: %t; closed: %v, expired: %v", holds, closed(), expired())
		}
	}
}

func TestA5_ProbesPerServerBeginAtZeroAndEndWithTheServer(t *testing.T) {
	m := New()
	m.Probe("10.0.0.1:6443", ProbeEnforced, time.Millisecond)
	m.Probe("10.0.0.2:6443", ProbeNotEnforced, time.Millisecond)
	m.Servers([]string{"10.0.0.1:6443"})
	expect(t, m, `# HELP fieldperm_probes_total [ALPHA] Probe requests, by kube-apiserver and result: enforced (admission refused it), not_enforced (admission did not see it), error (it proved nothing).
# TYPE fieldperm_probes_total counter
fieldperm_probes_total{result="enforced",server="10.0.0.1:6443"} 1
fieldperm_probes_total{result="error",server="10.0.0.1:6443"} 0
fieldperm_probes_total{result="not_enforced",server="10.0.0.1:6443"} 0
`, "fieldperm_probes_total")
	if n := len(scrape(t, m)["fieldperm_probe_duration_seconds"].GetMetric()); n != 1 {
		t.Errorf("durations of %d servers, want 1", n)
	}
}

func TestUncoveredConfigurationIsAbsentWithoutAKeeper(t *testing.T) {
	m := New()
	if scrape(t, m)["fieldperm_uncovered_configuration_applied"] != nil {
		t.Error("is there before anything was applied")
	}
	m.UncoveredApplied(true)
	m.UncoveredApplied(false)
	if got := scrape(t, m)["fieldperm_uncovered_configuration_applied"].GetMetric()[0].GetGauge().GetValue(); got != 0 {
		t.Errorf("got %v", got)
	}
}

func TestP7_DecisionsByModeAndReviewsInFlight(t *testing.T) {
	m := New()
	m.Decision("granular", "generic", "allowed")
	m.Decision("granular", "", "denied")
	expect(t, m, `# HELP fieldperm_decisions_total [ALPHA] Decisions of admission, by endpoint (granular, uncovered), mode, which is what let the request in (generic, granular, uncovered, none), and result (allowed, denied).
# TYPE fieldperm_decisions_total counter
fieldperm_decisions_total{endpoint="granular",mode="generic",result="allowed"} 1
fieldperm_decisions_total{endpoint="granular",mode="none",result="denied"} 1
`, "fieldperm_decisions_total")

	inFlight := func() float64 {
		return scrape(t, m)["fieldperm_reviews_in_flight"].GetMetric()[0].GetGauge().GetValue()
	}
	handler := m.InFlight("granular", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if inFlight() != 1 {
			t.Errorf("while it is answered %v are", inFlight())
		}
		panic("boom")
	}))
	func() {
		defer func() { _ = recover() }()
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	}()
	if inFlight() != 0 {
		t.Errorf("afterwards %v are being answered", inFlight())
	}
}

func TestServingCertificateIsTheServedOne(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(until time.Time) []byte {
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	var served []byte
	m := New()
	m.ServingCertificate(func() ([]byte, []byte) { return served, nil })
	const name = "fieldperm_serving_certificate_expiration_timestamp_seconds"
	got := func() float64 { return scrape(t, m)[name].GetMetric()[0].GetGauge().GetValue() }
	for _, none := range [][]byte{nil, []byte("no PEM"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})} {
		if served = none; got() == got() {
			t.Errorf("%q: got %v, want NaN", none, got())
		}
	}
	for _, until := range []int64{2000000000, 2100000000} {
		if served = issue(time.Unix(until, 0)); got() != float64(until) {
			t.Errorf("got %v, want %v", got(), until)
		}
	}
}

func TestHandlerServesTheMetricsAndThoseOfTheProcess(t *testing.T) {
	w := httptest.NewRecorder()
	New().Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for _, name := range []string{"fieldperm_enforcement_proven 0", "fieldperm_build_info{", "go_goroutines"} {
		if !strings.Contains(w.Body.String(), name) {
			t.Errorf("has no %q", name)
		}
	}
}

func TestP8_CacheEntriesAreThoseAtTheScrape(t *testing.T) {
	m := New()
	const name = "fieldperm_decision_cache_entries"
	if scrape(t, m)[name] != nil {
		t.Error("is there before there is a chain")
	}
	kept := map[string]int{"protector": 2, "in-cluster-authorizer": 8192}
	m.CacheEntries(func() map[string]int { return kept })
	expect(t, m, `# HELP fieldperm_decision_cache_entries [ALPHA] Answers to permission checks that are kept, by the name of the authorizer that gave them.
# TYPE fieldperm_decision_cache_entries gauge
fieldperm_decision_cache_entries{name="in-cluster-authorizer"} 8192
fieldperm_decision_cache_entries{name="protector"} 2
`, name)
	kept = map[string]int{"other": 0}
	expect(t, m, `# HELP fieldperm_decision_cache_entries [ALPHA] Answers to permission checks that are kept, by the name of the authorizer that gave them.
# TYPE fieldperm_decision_cache_entries gauge
fieldperm_decision_cache_entries{name="other"} 0
`, name)
}

func TestP8_ChecksAreCountedBySource(t *testing.T) {
	m := New()
	for _, source := range []string{"hit", "miss", "shared", "local", "local"} {
		m.CheckFrom(source)
	}
	expect(t, m, `# HELP fieldperm_check_cache_total [ALPHA] Permission checks, by where the answer is from: hit (kept from an earlier one), miss (an authorizer was asked by a round trip), shared (the same check was under way), local (decided in process).
# TYPE fieldperm_check_cache_total counter
fieldperm_check_cache_total{result="hit"} 1
fieldperm_check_cache_total{result="local"} 2
fieldperm_check_cache_total{result="miss"} 1
fieldperm_check_cache_total{result="shared"} 1
`, "fieldperm_check_cache_total")
}

func TestKEP3331_ProvidersAndCallersAreCounted(t *testing.T) {
	m := New()
	m.Authenticated("success", time.Millisecond)
	m.Authenticated("error", time.Millisecond)
	durations := map[string]uint64{}
	for _, metric := range scrape(t, m)["fieldperm_authentication_duration_seconds"].GetMetric() {
		durations[metric.GetLabel()[0].GetValue()] = metric.GetHistogram().GetSampleCount()
	}
	if len(durations) != 2 || durations["success"] != 1 || durations["error"] != 1 {
		t.Errorf("durations are %v", durations)
	}
	const name = "apiserver_authentication_jwt_authenticator_provider_status_timestamp_seconds"
	providers := func() map[string]float64 {
		out := map[string]float64{}
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if family.GetName() == name {
					key := ""
					for _, label := range metric.GetLabel() {
						key += label.GetName() + "=" + label.GetValue() + " "
					}
					out[key] = metric.GetGauge().GetValue()
				}
			}
		}
		return out
	}
	began := float64(time.Now().Unix())
	m.Provider("https://a.example", "id", true)
	m.Provider("https://a.example", "id", false)
	m.Provider("https://b.example", "id", false)
	if got := providers(); len(got) != 3 || got["apiserver_id_hash="+hashed("id")+" jwt_issuer_hash="+hashed("https://a.example")+" result=success "] < began {
		t.Errorf("providers are %v", got)
	}
	m.ProviderGone("https://a.example", "id")
	if got := providers(); len(got) != 1 || got["apiserver_id_hash="+hashed("id")+" jwt_issuer_hash="+hashed("https://b.example")+" result=failure "] < began {
		t.Errorf("providers are %v after one is gone", got)
	}
}
