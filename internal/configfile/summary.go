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
	name := one.Issuer.URL
	if one.Issuer.DiscoveryURL != "" {
		name += " (discovered at " + one.Issuer.DiscoveryURL + ")"
	}
	trust := "trusts the system's CAs"
	if one.Issuer.CertificateAuthority != "" {
		trust = "trusts its own CA"
	}
	m := one.ClaimMappings
	parts := []string{
		name, trust,
		"audience " + oneOf(one.Issuer.Audiences),
		"username from " + prefixed(m.Username),
		"groups from " + prefixed(m.Groups),
		"uid from " + source(m.UID.Claim, m.UID.Expression),
	}
	for _, extra := range m.Extra {
		parts = append(parts, "extra "+extra.Key+" from "+source("", extra.ValueExpression))
	}
	rules := len(one.ClaimValidationRules) + len(one.UserValidationRules)
	return strings.Join(append(parts, counted(rules, "rule")), ", ")
}

func prefixed(m apiserver.PrefixedClaimOrExpression) string {
	out := source(m.Claim, m.Expression)
	if m.Prefix != nil && *m.Prefix != "" {
		out += " behind " + quoted(*m.Prefix)
	}
	return out
}

func source(claim, expression string) string {
	switch {
	case claim != "":
		return "claim " + quoted(claim)
	case expression != "":
		return shortened(oneLine(expression), longestValue)
	}
	return "nothing"
}
