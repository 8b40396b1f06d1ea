package metricstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	authorizationmetrics "k8s.io/apiserver/pkg/authorization/metrics"
	authenticationreload "k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	authorizationreload "k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// KEP3221 are the nine metrics of KEP-3221. fieldperm has them as kube-apiserver has, under the latter's
// names: the label job tells whose a series is.
func KEP3221() []string {
	return []string{
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
}

// LibraryNames are those metrics of Kubernetes' libraries that alerts, dashboard and documentation are
// about.
func LibraryNames() []string {
	return slices.Concat(KEP3221(), []string{
		"apiserver_authorization_config_controller_last_config_info",
		"apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
		"apiserver_authentication_config_controller_automatic_reloads_total",
		"apiserver_authentication_config_controller_last_config_info",
	})
}

// Provider is the metric of KEP-3331 that no library has. fieldperm declares it, under the name of the proposal.
const Provider = "apiserver_authentication_jwt_authenticator_provider_status_timestamp_seconds"

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

// Libraries uses the metrics of Kubernetes' libraries in every way that a chain of authorizers and two
// configuration files do. They are in the registry of component-base.
func Libraries(ctx context.Context) error {
	for kind, name := range map[string]string{"Webhook": "protector", "RBAC": "rbac"} {
		for _, decision := range []authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionDeny, authorizer.DecisionNoOpinion} {
			one := authorizationmetrics.InstrumentedAuthorizer(kind, name, decided(decision))
			if _, _, err := one.Authorize(ctx, authorizer.AttributesRecord{User: &user.DefaultInfo{}}); err != nil {
				return fmt.Errorf("authorizer %q: %w", name, err)
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
	return nil
}
