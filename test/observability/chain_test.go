package observability

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	authorizationmetrics "k8s.io/apiserver/pkg/authorization/metrics"
	authenticationreload "k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	authorizationreload "k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// kep3221 are the nine metrics of KEP-3221. fieldperm has them as kube-apiserver has, in the latter's names:
// the label job tells whose a series is.
var kep3221 = []string{
	"apiserver_authorization_decisions_total",
	"apiserver_authorization_match_condition_evaluation_errors_total",
	"apiserver_authorization_match_condition_evaluation_seconds",
	"apiserver_authorization_match_condition_exclusions_total",
	"apiserver_authorization_webhook_duration_seconds",
	"apiserver_authorization_webhook_evaluations_fail_open_total",
	"apiserver_authorization_webhook_evaluations_total",
	"apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
	"apiserver_authorization_config_controller_automatic_reloads_total",
}

// ofLibraries are those metrics of Kubernetes' libraries that rules, dashboard and guide are about.
func ofLibraries() []string {
	return append([]string{
		"apiserver_authorization_config_controller_last_config_info",
		"apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
		"apiserver_authentication_config_controller_automatic_reloads_total",
		"apiserver_authentication_config_controller_last_config_info",
	}, kep3221...)
}

// decided is an authorizer that always decides so.
type decided authorizer.Decision

func (d decided) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.Decision(d), "", nil
}

func (d decided) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(d.Authorize(ctx, a))
}

func (decided) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", errors.New("has no conditions")
}

// useLibraries uses the metrics of Kubernetes' libraries in every way that a chain and two files do.
func useLibraries(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for kind, name := range map[string]string{"Webhook": "protector", "RBAC": "rbac"} {
		for _, decision := range []authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionDeny, authorizer.DecisionNoOpinion} {
			one := authorizationmetrics.InstrumentedAuthorizer(kind, name, decided(decision))
			if _, _, err := one.Authorize(ctx, authorizer.AttributesRecord{User: &user.DefaultInfo{}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	conditions := authorizationcel.NewMatcherMetrics()
	conditions.RecordAuthorizationMatchConditionEvaluation(ctx, "Webhook", "protector", time.Millisecond)
	conditions.RecordAuthorizationMatchConditionEvaluationFailure(ctx, "Webhook", "protector")
	conditions.RecordAuthorizationMatchConditionExclusion(ctx, "Webhook", "protector")
	webhooks := webhookmetrics.NewWebhookMetrics()
	for _, result := range []string{"canceled", "timeout", "error", "success"} {
		webhooks.RecordWebhookEvaluation(ctx, "protector", result)
		webhooks.RecordWebhookDuration(ctx, "protector", result, 0.001)
	}
	for _, result := range []string{"timeout", "error"} {
		webhooks.RecordWebhookFailOpen(ctx, "protector", result)
	}
	authorizationreload.RegisterMetrics()
	authorizationreload.RecordAuthorizationConfigAutomaticReloadFailure("id")
	authorizationreload.RecordAuthorizationConfigAutomaticReloadSuccess("id", "data")
	authenticationreload.RegisterMetrics()
	authenticationreload.RecordAuthenticationConfigAutomaticReloadFailure("id")
	authenticationreload.RecordAuthenticationConfigAutomaticReloadSuccess("id", "data")
}

func TestKEP3221_GuideListsTheNineMetrics(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(apiserver_auth[a-z_]+)` \\| (\\w+) \\|([^|]*)\\|")
	all := theirs(t)
	listed := map[string]bool{}
	for _, match := range row.FindAllStringSubmatch(read(t, guide), -1) {
		name, kind, cell := match[1], match[2], match[3]
		listed[name] = true
		f, ok := all[name]
		if !ok {
			t.Errorf("%s is in docs/guide/observability.md, but nothing exposes it", name)
			continue
		}
		if kind != strings.ToLower(f.kind.String()) {
			t.Errorf("%s: listed as %s, is a %s", name, kind, f.kind)
		}
		for label := range f.labels {
			if !strings.Contains(cell, "`"+label+"`") {
				t.Errorf("%s: label %s is not listed", name, label)
			}
		}
		if n := strings.Count(cell, "`") / 2; n != len(f.labels) {
			t.Errorf("%s: %d labels are listed, it has %d", name, n, len(f.labels))
		}
	}
	for _, name := range ofLibraries() {
		if !listed[name] {
			t.Errorf("%s is not in docs/guide/observability.md", name)
		}
	}
}

func TestKEP3221_DashboardShowsTheNineMetrics(t *testing.T) {
	shown := ""
	for _, p := range dashboard(t).Panels {
		for _, q := range p.Targets {
			shown += q.Expr + "\n"
		}
	}
	for _, name := range kep3221 {
		if !regexp.MustCompile(name + `(_bucket|_sum|_count)?\{[^}]*job="fieldperm"`).MatchString(shown) {
			t.Errorf("%s of fieldperm is on no panel", name)
		}
	}
}

// kube-apiserver has the same metrics. Whatever is about fieldperm's own chain, or about kube-apiserver's
// question to fieldperm, says so.
func TestKEP3221_RulesSayWhoseChainTheyAreAbout(t *testing.T) {
	named := regexp.MustCompile(`(apiserver_auth\w+)\{([^}]*)\}`)
	for name, rule := range alerts(t) {
		for _, match := range named.FindAllStringSubmatch(rule.Expr, -1) {
			if slices.Contains(ofLibraries(), match[1]) && !strings.Contains(match[2], `job="fieldperm"`) && !strings.Contains(match[2], `job!="fieldperm"`) {
				t.Errorf("%s: %s of fieldperm and of kube-apiserver are not told apart: add job", name, match[1])
			}
		}
	}
}
