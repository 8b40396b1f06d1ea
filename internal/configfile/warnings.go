package configfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

const (
	// admissionTimeout is how long kube-apiserver waits for an admission webhook by default.
	admissionTimeout = 10 * time.Second
	// conditionsTimeout is the longest timeout without a warning of a webhook that returns conditions. kube-apiserver waits for it and for other
	// authorizers during one call of /authorize.
	conditionsTimeout = time.Second
	// longTTL is the longest cache time without a warning. After a verb is revoked, an administrator would take a longer delay for a
	// fault.
	longTTL = time.Minute
)

// warnChain reports settings that are valid but probably not intended.
func (d *document) warnChain(out *Authorization) {
	d.warnAlpha()
	var waits time.Duration
	grants := false
	for i, one := range out.Configuration.Authorizers {
		path := item("authorizers", i)
		switch {
		case one.Type == TypeNode:
			d.warn(path, "Node has no opinion here, since its graph is in kube-apiserver only", afterNode(out, i))
		case one.Webhook != nil:
			grants = true
			waits += one.Webhook.Timeout.Duration
			d.warnWebhook(child(path, "webhook"), one.Webhook)
			if out.ConditionsOf(i) != nil && one.Webhook.Timeout.Duration > conditionsTimeout {
				d.warn(child(path, "webhook.timeout"), fmt.Sprintf("is %s: the authorization phase waits for this webhook, and kube-apiserver waits 3s for the whole answer by default", one.Webhook.Timeout.Duration), "write at most "+conditionsTimeout.String())
			}
		default:
			grants = true
		}
	}
	if !grants {
		d.warn("authorizers", "none can allow anything, so that every change is denied", "add {type: RBAC, name: rbac}, or a webhook with connectionInfo.type: InClusterConfig")
	}
	if waits > admissionTimeout {
		d.warn("authorizers", fmt.Sprintf("timeouts add up to %s for one check, and a webhook that answers with an error is asked up to 4 times, but kube-apiserver waits %s for admission by default", waits, admissionTimeout),
			"write shorter timeouts, or a longer timeoutSeconds for fieldperm's admission webhooks")
	}
}

func (d *document) warnAlpha() {
	if version := d.text("apiVersion"); strings.HasSuffix(version, "/v1alpha1") {
		d.warn("apiVersion", quoted(version)+" is an alpha version", "write apiVersion: "+apiserver.GroupName+"/v1")
	}
}

// afterNode returns advice about an authorizer to replace Node, unless the chain has one.
func afterNode(out *Authorization, i int) string {
	for _, one := range out.Configuration.Authorizers[i:] {
		if one.Webhook != nil && one.Webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeInCluster {
			return "it may stay: the InClusterConfig entry behind it asks kube-apiserver's own"
		}
	}
	return "add a webhook with connectionInfo.type: InClusterConfig behind it, which asks kube-apiserver's own"
}

func (d *document) warnWebhook(path string, webhook *apiserver.WebhookConfiguration) {
	zero := func(name string, ttl metav1.Duration, caches bool, off string) {
		at := child(path, name)
		if given, err := time.ParseDuration(d.text(at)); caches && err == nil && given == 0 {
			d.warn(at, fmt.Sprintf("%s counts as not given, that is %s", quoted(d.text(at)), ttl.Duration), "to keep no answers, write "+off+": false")
		}
	}
	zero("authorizedTTL", webhook.AuthorizedTTL, webhook.CacheAuthorizedRequests, "cacheAuthorizedRequests")
	zero("unauthorizedTTL", webhook.UnauthorizedTTL, webhook.CacheUnauthorizedRequests, "cacheUnauthorizedRequests")
	if webhook.CacheAuthorizedRequests && webhook.AuthorizedTTL.Duration > longTTL {
		d.warn(child(path, "authorizedTTL"), fmt.Sprintf("is %s: a verb that is revoked may count for so long", webhook.AuthorizedTTL.Duration), "write a shorter authorizedTTL, for example 10s")
	}
	if slices.ContainsFunc(webhook.MatchConditions, func(one apiserver.WebhookMatchCondition) bool {
		return strings.Contains(one.Expression, "has(request.resourceAttributes)") || strings.Contains(one.Expression, "has(request.nonResourceAttributes)")
	}) {
		return
	}
	for i, one := range webhook.MatchConditions {
		at := child(item(child(path, "matchConditions"), i), "expression")
		attributes, requests := "resourceAttributes", "not about a resource"
		if !strings.Contains(one.Expression, "request.resourceAttributes.") {
			attributes, requests = "nonResourceAttributes", "about a resource"
		}
		if strings.Contains(one.Expression, "request."+attributes+".") {
			d.warn(at, "fails for requests that are "+requests+", so that failurePolicy "+webhook.FailurePolicy+" decides", "put the condition has(request."+attributes+") before it")
			return
		}
	}
}

// warnIssuers reports settings that are valid but probably not intended.
func (d *document) warnIssuers(configuration *apiserver.AuthenticationConfiguration) {
	d.warnAlpha()
	anonymous := configuration.Anonymous
	if len(configuration.JWT) == 0 && (anonymous == nil || !anonymous.Enabled) {
		d.warn("", "has neither issuers nor anonymous callers, so that only client certificates are accepted", "add an issuer below jwt, or leave the file out")
	}
	if anonymous != nil {
		if anonymous.Enabled && len(anonymous.Conditions) == 0 {
			d.warn("anonymous", "is enabled for every path: callers without a token are system:anonymous", "name paths in anonymous.conditions, or write enabled: false")
		}
		for i, condition := range anonymous.Conditions {
			if !strings.HasPrefix(condition.Path, "/") {
				d.warn(child(item("anonymous.conditions", i), "path"), quoted(condition.Path)+" is no request's path", "write a path that starts with /")
			}
		}
	}
	walk(d.root, "", 0, func(path string, _, _ *yaml.Node) {
		if text := d.text(path); strings.HasSuffix(strings.ToLower(path), "expression") && strings.Contains(text, "base64.") {
			d.warn(path, quoted(text)+" uses base64, which kube-apiserver does not have", "write it without base64 if kube-apiserver reads this file too")
		}
	})
	for i := range configuration.JWT {
		d.warnIssuer(item("jwt", i), &configuration.JWT[i])
	}
}

func (d *document) warnIssuer(path string, issuer *apiserver.JWTAuthenticator) {
	if selector := issuer.Issuer.EgressSelectorType; selector != "" {
		d.warn(child(path, "issuer.egressSelectorType"), quoted(string(selector))+" has no effect: fieldperm asks issuers directly", "leave it out")
	}
	for _, mapping := range []struct {
		name, holder, example string
		value                 apiserver.PrefixedClaimOrExpression
	}{
		{"username", "system:kube-controller-manager", "!user.username.startsWith('system:')", issuer.ClaimMappings.Username},
		{"groups", "system:masters", "user.groups.all(group, !group.startsWith('system:'))", issuer.ClaimMappings.Groups},
	} {
		at, value := child(path, "claimMappings."+mapping.name), mapping.value
		prefixed := value.Prefix != nil && *value.Prefix != ""
		if prefixed && *value.Prefix == "-" {
			d.warn(child(at, "prefix"), `"-" is a prefix like any other, as in "-alice"`,
				`write prefix: "" for none: only the flag --oidc-username-prefix of kube-apiserver takes "-" for that`)
		}
		checked := strings.Contains(value.Expression, "system:") || slices.ContainsFunc(issuer.UserValidationRules, func(rule apiserver.UserValidationRule) bool {
			return strings.Contains(rule.Expression, "system:") && strings.Contains(rule.Expression, "user."+mapping.name)
		})
		if (value.Claim != "" || value.Expression != "") && !prefixed && !checked {
			d.warn(at, fmt.Sprintf("has no prefix: a token can carry %s of the system, such as %s", mapping.name, mapping.holder),
				fmt.Sprintf("add to userValidationRules: expression: %q", mapping.example))
		}
	}
}
