package configfile

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

// SummaryOfChain returns one line per authorizer, in the order of the chain.
func SummaryOfChain(of *Authorization) []string {
	var out []string
	for i := range of.Configuration.Authorizers {
		one := &of.Configuration.Authorizers[i]
		parts := []string{fmt.Sprintf("%s (%s)", one.Name, one.Type)}
		switch {
		case one.Webhook != nil:
			parts = append(parts, webhookSummary(one.Webhook)...)
			if c := of.ConditionsOf(i); c != nil {
				parts = append(parts, "returns conditions as "+string(c.Dialect))
			}
		case one.Type == TypeRBAC:
			parts = append(parts, "decides in process, from the cluster's roles and bindings")
		case one.Type == TypeNode:
			parts = append(parts, "has no opinion here")
		}
		out = append(out, strings.Join(parts, ", "))
	}
	return out
}

func webhookSummary(webhook *apiserver.WebhookConfiguration) []string {
	asks := "asks the SubjectAccessReview API of kube-apiserver"
	if webhook.ConnectionInfo.KubeConfigFile != nil {
		asks = "asks by " + *webhook.ConnectionInfo.KubeConfigFile
	}
	kept := func(ttl metav1.Duration, caches bool) string {
		if !caches {
			return "not kept"
		}
		return "kept " + ttl.Duration.String()
	}
	return []string{
		asks + " in " + webhook.SubjectAccessReviewVersion,
		"failurePolicy " + webhook.FailurePolicy,
		"timeout " + webhook.Timeout.Duration.String(),
		"allowed " + kept(webhook.AuthorizedTTL, webhook.CacheAuthorizedRequests),
		"not allowed " + kept(webhook.UnauthorizedTTL, webhook.CacheUnauthorizedRequests),
		counted(len(webhook.MatchConditions), "condition"),
	}
}

func counted(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// SummaryOfIssuers returns one line per issuer, and one line about anonymous requests if they are configured.
func SummaryOfIssuers(configuration *apiserver.AuthenticationConfiguration) []string {
	var out []string
	for i := range configuration.JWT {
		out = append(out, issuerSummary(&configuration.JWT[i]))
	}
	if anonymous := configuration.Anonymous; anonymous != nil {
		switch {
		case !anonymous.Enabled:
			out = append(out, "anonymous callers are refused")
		case len(anonymous.Conditions) == 0:
			out = append(out, "anonymous callers are let in on every path")
		default:
			var paths []string
			for _, condition := range anonymous.Conditions {
				paths = append(paths, condition.Path)
			}
			out = append(out, "anonymous callers are let in on "+strings.Join(paths, ", "))
		}
	}
	return out
}

func issuerSummary(one *apiserver.JWTAuthenticator) string {
	name, trust, m := one.Issuer.URL, "trusts the system's CAs", one.ClaimMappings
	if one.Issuer.DiscoveryURL != "" {
		name += " (discovered at " + one.Issuer.DiscoveryURL + ")"
	}
	if one.Issuer.CertificateAuthority != "" {
		trust = "trusts its own CA"
	}
	parts := []string{
		name, trust,
		"audience " + strings.Join(one.Issuer.Audiences, " or "),
		"username from " + mapped(m.Username.Claim, m.Username.Expression, m.Username.Prefix),
		"groups from " + mapped(m.Groups.Claim, m.Groups.Expression, m.Groups.Prefix),
		"uid from " + mapped(m.UID.Claim, m.UID.Expression, nil),
	}
	for _, extra := range m.Extra {
		parts = append(parts, "extra "+extra.Key+" from "+mapped("", extra.ValueExpression, nil))
	}
	rules := len(one.ClaimValidationRules) + len(one.UserValidationRules)
	return strings.Join(append(parts, counted(rules, "rule")), ", ")
}

// mapped describes where a value comes from.
func mapped(claim, expression string, prefix *string) string {
	out := "nothing"
	switch {
	case claim != "":
		out = "claim " + quoted(claim)
	case expression != "":
		out = shortened(oneLine(expression), longestValue)
	}
	if prefix != nil && *prefix != "" {
		out += " behind " + quoted(*prefix)
	}
	return out
}
