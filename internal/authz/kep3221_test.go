package authz

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// nine returns the nine metrics of KEP-3221, Monitoring, with their labels.
func nine() map[string][]string {
	return map[string][]string{
		"apiserver_authorization_decisions_total":                                           {"decision", "name", "type"},
		"apiserver_authorization_webhook_evaluations_total":                                 {"name", "result"},
		"apiserver_authorization_webhook_duration_seconds":                                  {"name", "result"},
		"apiserver_authorization_webhook_evaluations_fail_open_total":                       {"name", "result"},
		"apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds": {"apiserver_id_hash", "status"},
		"apiserver_authorization_config_controller_automatic_reloads_total":                 {"apiserver_id_hash", "status"},
		"apiserver_authorization_match_condition_evaluation_errors_total":                   {"name", "type"},
		"apiserver_authorization_match_condition_exclusions_total":                          {"name", "type"},
		"apiserver_authorization_match_condition_evaluation_seconds":                        {"name", "type"},
	}
}

// gather returns the families of Kubernetes' libraries.
func gather(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, family := range families {
		out[family.GetName()] = family
	}
	return out
}

// series returns the value of the series with the labels ("name=value"), -1 if there is none.
func series(family *dto.MetricFamily, labels ...string) float64 {
	for _, m := range family.GetMetric() {
		var got []string
		for _, l := range m.GetLabel() {
			got = append(got, l.GetName()+"="+l.GetValue())
		}
		if !slices.ContainsFunc(labels, func(want string) bool { return !slices.Contains(got, want) }) {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

func TestKEP3221_TheNineMetrics(t *testing.T) {
	p := newPlace(t)
	// No other test uses these names.
	suffix := strconv.FormatInt(time.Now().UnixNano(), 36)
	broken, open, denying, allowing := "broken-"+suffix, "open-"+suffix, "denying-"+suffix, "allowing-"+suffix
	failing, no, yes := newRemote(t, code(http.StatusBadRequest)), newRemote(t, deny("")), newRemote(t, allow(""))
	p.configure(
		hook{name: broken, kubeconfig: p.kubeconfig("b", yes), policy: "NoOpinion", conditions: []string{"request.nonResourceAttributes.path == '/'"}},
		hook{name: open, kubeconfig: p.kubeconfig("f", failing), policy: "NoOpinion"},
		hook{name: denying, kubeconfig: p.kubeconfig("n", no), conditions: []string{"request.user == 'mallory'"}},
		rbacEntry,
		hook{name: allowing, kubeconfig: p.kubeconfig("y", yes)})
	chain := run(t, p.chain(Settings{newRoles: mayAll(t, "root"), Identity: suffix}))
	for _, user := range []string{"mallory", "root", "alice"} {
		if _, err := chain.For(by(user)).Authorize(t.Context(), "update", false); err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
	// A webhook that responds with 400 is not healthy. One reload fails because of it, and one does not.
	p.configure(rbacEntry, hook{name: open, kubeconfig: p.path("f")})
	until(t, "the reload fails", func() bool { return chain.Fault() != nil })
	p.configure(rbacEntry)
	until(t, "the reload succeeds", func() bool { return chain.Fault() == nil })

	families := gather(t)
	for name, labels := range nine() {
		family := families[name]
		if family == nil {
			t.Errorf("%s: is not there", name)
			continue
		}
		for _, m := range family.GetMetric() {
			var got []string
			for _, l := range m.GetLabel() {
				got = append(got, l.GetName())
			}
			if slices.Sort(got); !slices.Equal(got, labels) {
				t.Errorf("%s: labels %q, want %q", name, got, labels)
			}
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "apiserver_delegated_authz_") {
			t.Errorf("%s: fieldperm's own checks count in it", name)
		}
	}
	for _, c := range []struct {
		name   string
		want   float64
		labels []string
	}{
		{"decisions_total", 1, []string{"type=Webhook", "name=" + denying, "decision=denied"}},
		{"decisions_total", 1, []string{"type=Webhook", "name=" + allowing, "decision=allowed"}},
		{"decisions_total", -1, []string{"name=" + open}},
		{"webhook_evaluations_total", 3, []string{"name=" + open, "result=error"}},
		{"webhook_evaluations_total", 1, []string{"name=" + allowing, "result=success"}},
		{"webhook_evaluations_total", -1, []string{"name=" + broken}},
		{"webhook_duration_seconds", 3, []string{"name=" + open, "result=error"}},
		{"webhook_evaluations_fail_open_total", 3, []string{"name=" + open, "result=error"}},
		{"match_condition_evaluation_errors_total", 3, []string{"type=Webhook", "name=" + broken}},
		{"match_condition_exclusions_total", 2, []string{"type=Webhook", "name=" + denying}},
		{"match_condition_evaluation_seconds", 3, []string{"type=Webhook", "name=" + denying}},
	} {
		if got := series(families["apiserver_authorization_"+c.name], c.labels...); got != c.want {
			t.Errorf("%s%q is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if series(families["apiserver_authorization_decisions_total"], "type=RBAC", "name=rbac", "decision=allowed") < 1 {
		t.Error("RBAC's decision is not counted")
	}
}
