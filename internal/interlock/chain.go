package interlock

import (
	"fmt"
	"slices"
	"time"

	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// checkChain returns why kube-apiserver's AuthorizationConfiguration does not meet the assumptions of an Allow of /authorize. It
// returns nil if it does: fieldperm is the last authorizer, it is asked about writes only and never about its own requests, and
// kube-apiserver caches an Allow for at most longest.
func checkChain(raw []byte, longest time.Duration) error {
	configuration, err := load.LoadFromData(raw)
	if err != nil {
		return fmt.Errorf("is no AuthorizationConfiguration (%w)", err)
	}
	at := slices.IndexFunc(configuration.Authorizers, func(a apiserverapi.AuthorizerConfiguration) bool { return a.Name == webhooks.AuthorizerName })
	switch {
	case at < 0:
		return fmt.Errorf("has no authorizer %q", webhooks.AuthorizerName)
	case at != len(configuration.Authorizers)-1:
		return fmt.Errorf("the authorizer %q is not the last", webhooks.AuthorizerName)
	case configuration.Authorizers[at].Type != apiserverapi.TypeWebhook || configuration.Authorizers[at].Webhook == nil:
		return fmt.Errorf("the authorizer %q is no webhook", webhooks.AuthorizerName)
	}
	webhook := configuration.Authorizers[at].Webhook
	// The loader has set the default for an absent field: minutes.
	if webhook.CacheAuthorizedRequests && webhook.AuthorizedTTL.Duration > longest {
		return fmt.Errorf("the authorizer %q has authorizedTTL %s, and an Allow is not right for longer than %s", webhooks.AuthorizerName, webhook.AuthorizedTTL.Duration, longest)
	}
	for _, expected := range webhooks.AuthorizerConditionPatterns() {
		if !slices.ContainsFunc(webhook.MatchConditions, func(c apiserverapi.WebhookMatchCondition) bool { return expected.MatchString(c.Expression) }) {
			return fmt.Errorf("the authorizer %q lacks a match condition of the form %q", webhooks.AuthorizerName, expected)
		}
	}
	return nil
}
