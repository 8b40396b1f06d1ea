package observability

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// step is the interval of scraping and evaluation.
const step = 15 * time.Second

// moment describes an alert that fires: its first time, and its text.
type moment struct {
	after time.Duration
	says  string
}

// firings evaluates rules over series as Prometheus does, and returns which of them fired.
func firings(t *testing.T, all map[string]rulefmt.Rule, series []string, until time.Duration) map[string]moment {
	t.Helper()
	storage := promqltest.LoadedStorage(t, fmt.Sprintf("load %s\n  %s\n", step, strings.Join(series, "\n  ")))
	defer storage.Close()
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 5*time.Minute, 100000), storage)
	out := map[string]moment{}
	for name, from := range all {
		expression, err := parser.NewParser(parser.Options{}).ParseExpr(from.Expr)
		if err != nil {
			t.Fatal(err)
		}
		rule := rules.NewAlertingRule(name, expression, time.Duration(from.For), time.Duration(from.KeepFiringFor),
			labels.FromMap(from.Labels), labels.FromMap(from.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
		for at := time.Duration(0); at <= until && out[name].says == ""; at += step {
			if _, err := rule.Eval(context.Background(), 0, time.Unix(0, 0).UTC().Add(at), query, &url.URL{}, 0); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			rule.ForEachActiveAlert(func(a *rules.Alert) {
				if a.State == rules.StateFiring {
					out[name] = moment{at, a.Annotations.Get("summary") + ": " + a.Annotations.Get("description")}
				}
			})
		}
	}
	return out
}

// healthy are the series of two healthy fieldperms and a healthy kube-apiserver, for 100 minutes. Time begins at 0, so certificates expire
// at seconds since then.
func healthy() map[string]string {
	out := map[string]string{}
	for _, instance := range []string{"a", "b"} {
		for series, values := range map[string]string{
			`fieldperm_enforcement_proven{}`:                                          "1x400",
			`fieldperm_enforcement_not_proven_reason{reason="starting"}`:              "0x400",
			`fieldperm_enforcement_not_proven_reason{reason="probe_not_enforced"}`:    "0x400",
			`fieldperm_enforcement_transitions_total{to="not_proven"}`:                "0x400",
			`fieldperm_probes_total{server="192.0.2.1:6443",result="enforced"}`:       "0+6x400",
			`fieldperm_probes_total{server="192.0.2.1:6443",result="error"}`:          "0x400",
			`fieldperm_probes_total{server="192.0.2.1:6443",result="not_enforced"}`:   "0x400",
			`fieldperm_uncovered_configuration_applied{}`:                             "1x400",
			`fieldperm_reviews_total{endpoint="granular",result="allowed"}`:           "0+1000x400",
			`fieldperm_reviews_total{endpoint="granular",result="denied"}`:            "0+500x400",
			`fieldperm_reviews_total{endpoint="granular",result="probe"}`:             "0+6x400",
			`fieldperm_reviews_total{endpoint="granular",result="error"}`:             "0x400",
			`fieldperm_reviews_total{endpoint="granular",result="refused"}`:           "0x400",
			`fieldperm_review_duration_seconds_bucket{endpoint="granular",le="0.1"}`:  "0+1500x400",
			`fieldperm_review_duration_seconds_bucket{endpoint="granular",le="2.5"}`:  "0+1500x400",
			`fieldperm_review_duration_seconds_bucket{endpoint="granular",le="+Inf"}`: "0+1500x400",
			`fieldperm_reviews_in_flight{endpoint="granular"}`:                        "3x400",
			`fieldperm_reviews_without_room_total{}`:                                  "0x400",
			`fieldperm_checks_total{result="allowed"}`:                                "0+2000x400",
			`fieldperm_checks_total{result="error"}`:                                  "0x400",
			`fieldperm_check_duration_seconds_bucket{result="allowed",le="0.1"}`:      "0+100x400",
			`fieldperm_check_duration_seconds_bucket{result="allowed",le="1"}`:        "0+100x400",
			`fieldperm_check_duration_seconds_bucket{result="allowed",le="+Inf"}`:     "0+100x400",
			`fieldperm_serving_certificate_expiration_timestamp_seconds{}`:            "7776000x400",
			`fieldperm_schema_last_compile_timestamp_seconds{}`:                       "1700000000x400",
			`fieldperm_schema_kinds{state="compiled"}`:                                "150x400",
			`fieldperm_schema_kinds{state="failed"}`:                                  "0x400",
			`fieldperm_schema_faults{}`:                                               "0x400",
			`fieldperm_schema_load_failures_total{}`:                                  "0x400",
			`up{}`:                                                                    "1x400",
			// The chain of another authorizer that has the same name as fieldperm in kube-apiserver's chain.
			`apiserver_authorization_webhook_evaluations_total{name="fieldperm",result="success"}`: "0+1000x400",
			`apiserver_authorization_webhook_evaluations_total{name="fieldperm",result="error"}`:   "0+1x400",
			// A file was faulty once.
			`apiserver_authorization_config_controller_automatic_reloads_total{status="failure"}`: "0x20 1x380",
			`apiserver_authorization_config_controller_automatic_reloads_total{status="success"}`: "0x30 1x370",
		} {
			name, own, _ := strings.Cut(series, "{")
			out[strings.Replace(name+`{instance="`+instance+`",job="fieldperm",`+own, ",}", "}", 1)] = values
		}
	}
	for series, values := range map[string]string{
		`apiserver_admission_webhook_fail_open_count{name="other.example.com"}`:                                                              "0+5x400",
		`apiserver_admission_webhook_rejection_count{name="other.example.com",error_type="calling_webhook_error",rejection_code="503"}`:      "0+5x400",
		`apiserver_admission_webhook_rejection_count{name="granular.fieldperm.dev",error_type="no_error",rejection_code="403"}`:              "0+500x400",
		`apiserver_admission_webhook_rejection_count{name="granular.fieldperm.dev",error_type="calling_webhook_error",rejection_code="500"}`: "0+6x400",
		`apiserver_authorization_webhook_evaluations_total{name="fieldperm",result="success"}`:                                               "0+100x400",
		`apiserver_authorization_webhook_evaluations_total{name="fieldperm",result="canceled"}`:                                              "0+1x400",
		`apiserver_authorization_webhook_evaluations_total{name="other",result="error"}`:                                                     "0+1x400",
		// Two files and a skipped authorizer of kube-apiserver's own chain do not belong to fieldperm.
		`apiserver_authorization_config_controller_automatic_reloads_total{job="apiserver",status="failure"}`:  "0+1x400",
		`apiserver_authentication_config_controller_automatic_reloads_total{job="apiserver",status="failure"}`: "0+1x400",
		`apiserver_authorization_webhook_evaluations_fail_open_total{job="apiserver",name="other"}`:            "0+1x400",
		`apiserver_authorization_match_condition_evaluation_errors_total{job="apiserver",name="other"}`:        "0+1x400",
	} {
		out[series] = values
	}
	return out
}

// with returns the healthy series with some of them replaced, and without those that are "".
func with(changed map[string]string) []string {
	all := healthy()
	maps.Copy(all, changed)
	var out []string
	for series, values := range all {
		if values != "" {
			out = append(out, series+" "+values)
		}
	}
	slices.Sort(out)
	return out
}

const of = `{instance="a",job="fieldperm",`

// eachMinute is a counter that grows as often as a faulty file is read again.
var eachMinute = func() string {
	var out strings.Builder
	for i := range 85 {
		out.WriteString(strings.Repeat(fmt.Sprintf(" %d", i+1), 4))
	}
	return out.String()
}()

// faulty has for each alert the series of its fault. Other alerts than also must not fire.
var faulty = map[string]struct {
	series map[string]string
	// after is the time at which the alert must fire, and not before: the fault begins at 15 m in series that begin well.
	after time.Duration
	says  []string
	also  []string
}{
	"FieldpermEnforcementNotProven": {
		series: map[string]string{
			`fieldperm_enforcement_proven{instance="a",job="fieldperm"}`:                     "1x59 0x340",
			`fieldperm_enforcement_not_proven_reason` + of + `reason="configuration_loose"}`: "0x59 1x340",
		},
		after: 16 * time.Minute, says: []string{"a has", "Reason: configuration_loose."},
	},
	"FieldpermEnforcementFlaps": {
		series: map[string]string{`fieldperm_enforcement_transitions_total` + of + `to="not_proven"}`: "0x59 1 1 2 2 3 3 4 4 5x300"},
		after:  15*time.Minute + 6*step, says: []string{"in 15 minutes"},
	},
	"FieldpermProbeNotEnforced": {
		series: map[string]string{`fieldperm_probes_total` + of + `server="192.0.2.1:6443",result="not_enforced"}`: "0x59 1x340"},
		after:  15 * time.Minute, says: []string{"kube-apiserver 192.0.2.1:6443 passed admission"},
	},
	"FieldpermProbeErrors": {
		series: map[string]string{`fieldperm_probes_total` + of + `server="192.0.2.1:6443",result="error"}`: "0x59 0+6x340"},
		after:  15*time.Minute + 6*step + 5*time.Minute, says: []string{"192.0.2.1:6443", "%"},
	},
	"FieldpermUncoveredNotApplied": {
		series: map[string]string{`fieldperm_uncovered_configuration_applied{instance="a",job="fieldperm"}`: "1x59 0x340"},
		after:  17 * time.Minute,
	},
	"FieldpermWebhookFailsOpen": {
		series: map[string]string{`apiserver_admission_webhook_fail_open_count{instance="k",name="granular.fieldperm.dev"}`: "0x59 1x340"},
		after:  15 * time.Minute, says: []string{"kube-apiserver k", "granular.fieldperm.dev"},
	},
	"FieldpermDown": {
		series: map[string]string{
			`fieldperm_enforcement_proven{instance="a",job="fieldperm"}`: "1x59 stale",
			`fieldperm_enforcement_proven{instance="b",job="fieldperm"}`: "1x59 stale",
		},
		after: 16 * time.Minute,
	},
	"FieldpermTargetDown": {
		series: map[string]string{`up{instance="a",job="fieldperm"}`: "1x59 0x340"},
		after:  17 * time.Minute, says: []string{"a does not answer"},
	},
	"FieldpermWebhookRejections": {
		series: map[string]string{`apiserver_admission_webhook_rejection_count{instance="k",name="granular.fieldperm.dev",error_type="calling_webhook_error",rejection_code="503"}`: "0x59 0+1x340"},
		after:  17*time.Minute + step, says: []string{"calling_webhook_error"},
	},
	"FieldpermAuthorizerErrors": {
		series: map[string]string{`apiserver_authorization_webhook_evaluations_total{instance="k",name="fieldperm",result="timeout"}`: "0x59 0+1x340"},
		after:  20*time.Minute + step, says: []string{"timeout"},
	},
	"FieldpermReviewErrors": {
		series: map[string]string{`fieldperm_reviews_total` + of + `endpoint="granular",result="error"}`: "0x59 0+200x340"},
		after:  20*time.Minute + 2*step, says: []string{"granular of a", "%"},
	},
	"FieldpermRequestsRefused": {
		series: map[string]string{`fieldperm_reviews_total` + of + `endpoint="granular",result="refused"}`: "0x59 0+1x340"},
		after:  25*time.Minute + step, says: []string{"granular of a"},
	},
	"FieldpermReviewLatency": {
		series: map[string]string{`fieldperm_review_duration_seconds_bucket` + of + `endpoint="granular",le="0.1"}`: "0+1500x59 88500x340"},
		after:  25 * time.Minute, says: []string{"granular of a"},
	},
	"FieldpermReviewsPileUp": {
		series: map[string]string{`fieldperm_reviews_in_flight` + of + `endpoint="granular"}`: "3x59 101x340"},
		after:  20 * time.Minute, says: []string{"101 requests"},
	},
	"FieldpermReviewsWithoutRoom": {
		series: map[string]string{`fieldperm_reviews_without_room_total{instance="a",job="fieldperm"}`: "0x59 0+1x340"},
		after:  25*time.Minute + step, says: []string{"a refuses"},
	},
	"FieldpermCheckErrors": {
		series: map[string]string{`fieldperm_checks_total` + of + `result="error"}`: "0x59 0+200x340"},
		after:  20*time.Minute + 3*step, says: []string{"%"},
	},
	"FieldpermCheckLatency": {
		series: map[string]string{`fieldperm_check_duration_seconds_bucket` + of + `result="allowed",le="0.1"}`: "0+100x59 5900x340"},
		after:  25 * time.Minute, says: []string{"of a"},
	},
	"FieldpermCertificateExpiresSoon": {
		series: map[string]string{`fieldperm_serving_certificate_expiration_timestamp_seconds{instance="a",job="fieldperm"}`: "7776000x59 1036800x340"},
		after:  75 * time.Minute, says: []string{"11d "},
	},
	"FieldpermCertificateExpires": {
		series: map[string]string{`fieldperm_serving_certificate_expiration_timestamp_seconds{instance="a",job="fieldperm"}`: "7776000x59" + strings.Repeat(" NaN", 340)},
		after:  20 * time.Minute, says: []string{"cannot be read"},
	},
	"FieldpermAuthorizationConfigFailing": {
		series: map[string]string{`apiserver_authorization_config_controller_automatic_reloads_total` + of + `status="failure"}`: "0x59" + eachMinute},
		after:  20 * time.Minute, says: []string{"a goes on", "--authorization-config"},
	},
	"FieldpermAuthenticationConfigFailing": {
		series: map[string]string{`apiserver_authentication_config_controller_automatic_reloads_total` + of + `status="failure"}`: "0x59" + eachMinute},
		after:  20 * time.Minute, says: []string{"a goes on", "--authentication-config"},
	},
	"FieldpermChainFailsOpen": {
		series: map[string]string{`apiserver_authorization_webhook_evaluations_fail_open_total` + of + `name="protector",result="timeout"}`: "0x59 0+1x340"},
		after:  20*time.Minute + step, says: []string{"protector of a"},
	},
	"FieldpermChainWebhookErrors": {
		series: map[string]string{
			`apiserver_authorization_webhook_evaluations_total` + of + `name="protector",result="success"}`: "0+100x400",
			`apiserver_authorization_webhook_evaluations_total` + of + `name="protector",result="timeout"}`: "0x59 0+5x340",
		},
		after: 21*time.Minute + step, says: []string{"of a to", "protector", "timeout", "%"},
	},
	"FieldpermMatchConditionErrors": {
		series: map[string]string{`apiserver_authorization_match_condition_evaluation_errors_total` + of + `name="protector",type="Webhook"}`: "0x59 0+1x340"},
		after:  20*time.Minute + step, says: []string{"protector of a"},
	},
	"FieldpermSchemaNotLoaded": {
		series: map[string]string{`fieldperm_schema_last_compile_timestamp_seconds{instance="a",job="fieldperm"}`: "1x59 0x340"},
		after:  17 * time.Minute,
	},
	"FieldpermSchemaKindsFailed": {
		series: map[string]string{`fieldperm_schema_kinds` + of + `state="failed"}`: "0x59 2x340"},
		after:  20 * time.Minute, says: []string{"2 kinds"},
	},
	"FieldpermSchemaFaults": {
		series: map[string]string{`fieldperm_schema_faults{instance="a",job="fieldperm"}`: "0x59 1x340"},
		after:  20 * time.Minute, says: []string{"found 1 faults"},
	},
	"FieldpermSchemaLoadFailing": {
		series: map[string]string{`fieldperm_schema_load_failures_total{instance="a",job="fieldperm"}`: "0x59 0+1x340"},
		after:  20*time.Minute + 3*step, says: []string{"in 10 minutes"},
	},
}

func TestAlerts_AreQuietWithoutAFault(t *testing.T) {
	for name, at := range firings(t, alerts(t), with(nil), 100*time.Minute) {
		t.Errorf("%s fires after %s: %s", name, at.after, at.says)
	}
}

func TestAlerts_FireOnTheirCondition(t *testing.T) {
	all := alerts(t)
	for name := range all {
		if _, ok := faulty[name]; !ok {
			t.Errorf("%s: no series of this test makes it fire", name)
		}
	}
	for name, c := range faulty {
		t.Run(name, func(t *testing.T) {
			if _, ok := all[name]; !ok {
				t.Fatal("there is no such alert")
			}
			fired := firings(t, all, with(c.series), 80*time.Minute)
			at, ok := fired[name]
			if !ok {
				t.Fatal("does not fire")
			}
			if at.after != c.after {
				t.Errorf("fires after %s, want %s", at.after, c.after)
			}
			for _, want := range append(c.says, "") {
				if !strings.Contains(at.says, want) || strings.Contains(at.says, "error expanding") || strings.Contains(at.says, "no value") {
					t.Errorf("says %q, want %q", at.says, want)
				}
			}
			for other := range fired {
				if other != name && !slices.Contains(c.also, other) {
					t.Errorf("%s fires as well: %s", other, fired[other].says)
				}
			}
		})
	}
}

// TestA5_ProbeAlertDoesNotNeedAnEarlierSample: a counter that appears with its first increase shows
// none, the reason does.
func TestA5_ProbeAlertDoesNotNeedAnEarlierSample(t *testing.T) {
	all := alerts(t)
	fired := firings(t, map[string]rulefmt.Rule{"FieldpermProbeNotEnforced": all["FieldpermProbeNotEnforced"]},
		[]string{`fieldperm_enforcement_not_proven_reason{instance="a",reason="probe_not_enforced"} 1x10`}, time.Minute)
	if at := fired["FieldpermProbeNotEnforced"]; at.after != 0 || !strings.Contains(at.says, "to a kube-apiserver passed admission") {
		t.Errorf("fires after %s: %q", at.after, at.says)
	}
}

// TestA5_EnforcementThatIsNeverProvenFires: enforcement is not proven from the start, so that no metric shows a change.
func TestA5_EnforcementThatIsNeverProvenFires(t *testing.T) {
	all := alerts(t)
	one := map[string]rulefmt.Rule{"FieldpermEnforcementNotProven": all["FieldpermEnforcementNotProven"]}
	series := []string{`fieldperm_enforcement_proven{instance="a"} 0x10`, `fieldperm_enforcement_not_proven_reason{instance="a",reason="starting"} 1x10`}
	if at := firings(t, one, series, 2*time.Minute)["FieldpermEnforcementNotProven"]; at.after != time.Minute || !strings.Contains(at.says, "Reason: starting.") {
		t.Errorf("fires after %s: %q", at.after, at.says)
	}
	// A restart of less than a minute causes no alarm.
	if fired := firings(t, one, []string{`fieldperm_enforcement_proven{instance="a"} 0x3 1x10`}, 3*time.Minute); len(fired) != 0 {
		t.Errorf("got %v", fired)
	}
}
