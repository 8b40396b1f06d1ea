package configfile

import (
	"fmt"
	"regexp"
	"strings"
	"time"

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

// warn reports settings that are valid but probably not intended.
func (c chain) warn(out *Authorization) {
	if version, _ := c.value("apiVersion").(string); strings.HasSuffix(version, "/v1alpha1") {
		c.reading.warn("apiVersion", quoted(version)+" is an alpha version", "write apiVersion: "+apiserver.GroupName+"/v1")
	}
	var waits time.Duration
	grants := false
	for i, one := range c.configuration.Authorizers {
		path := item("authorizers", i)
		switch {
		case one.Type == TypeNode:
			c.reading.warn(path, "Node has no opinion here, since its graph is in kube-apiserver only", c.afterNode(i))
		case one.Webhook != nil:
			grants = true
			waits += one.Webhook.Timeout.Duration
			c.webhook(child(path, "webhook"), one.Webhook)
			if out.ConditionsOf(i) != nil && one.Webhook.Timeout.Duration > conditionsTimeout {
				c.reading.warn(child(path, "webhook.timeout"), fmt.Sprintf("is %s: the authorization phase waits for this webhook, and kube-apiserver waits 3s for the whole answer by default", one.Webhook.Timeout.Duration), "write at most "+conditionsTimeout.String())
			}
		default:
			grants = true
		}
	}
	if !grants {
		c.reading.warn("authorizers", "none can allow anything, so that every change is denied", "add {type: RBAC, name: rbac}, or a webhook with connectionInfo.type: InClusterConfig")
	}
	if waits > admissionTimeout {
		c.reading.warn("authorizers", fmt.Sprintf("timeouts add up to %s for one check, and a webhook that answers with an error is asked up to 4 times, but kube-apiserver waits %s for admission by default", waits, admissionTimeout),
			"write shorter timeouts, or a longer timeoutSeconds for fieldperm's admission webhooks")
	}
}

// afterNode returns advice about an authorizer to replace Node, unless the chain has one.
func (c chain) afterNode(i int) string {
	for _, one := range c.configuration.Authorizers[i:] {
		if one.Webhook != nil && one.Webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeInCluster {
			return "it may stay: the InClusterConfig entry behind it asks kube-apiserver's own"
		}
	}
	return "add a webhook with connectionInfo.type: InClusterConfig behind it, which asks kube-apiserver's own"
}

var (
	usesResource    = regexp.MustCompile(`request\.resourceAttributes\.`)
	guardsResource  = regexp.MustCompile(`has\(request\.resourceAttributes\)|has\(request\.nonResourceAttributes\)`)
	usesNonResource = regexp.MustCompile(`request\.nonResourceAttributes\.`)
)

func (c chain) webhook(path string, webhook *apiserver.WebhookConfiguration) {
	for _, ttl := range []struct {
		name, switchName string
		value            metav1.Duration
		caches           bool
	}{
		{"authorizedTTL", "cacheAuthorizedRequests", webhook.AuthorizedTTL, webhook.CacheAuthorizedRequests},
		{"unauthorizedTTL", "cacheUnauthorizedRequests", webhook.UnauthorizedTTL, webhook.CacheUnauthorizedRequests},
	} {
		at := child(path, ttl.name)
		if text, ok := c.value(at).(string); ok && ttl.caches {
			if d, err := time.ParseDuration(text); err == nil && d == 0 {
				c.reading.warn(at, fmt.Sprintf("%s counts as not given, that is %s", quoted(text), ttl.value.Duration), "to keep no answers, write "+ttl.switchName+": false")
			}
		}
	}
	if webhook.CacheAuthorizedRequests && webhook.AuthorizedTTL.Duration > longTTL {
		c.reading.warn(child(path, "authorizedTTL"), fmt.Sprintf("is %s: a verb that is revoked may count for so long", webhook.AuthorizedTTL.Duration), "write a shorter authorizedTTL, for example 10s")
	}
	guarded := false
	for _, one := range webhook.MatchConditions {
		guarded = guarded || guardsResource.MatchString(one.Expression)
	}
	for i, one := range webhook.MatchConditions {
		at := child(item(child(path, "matchConditions"), i), "expression")
		outcome := "so that failurePolicy " + webhook.FailurePolicy + " decides"
		switch {
		case guarded:
		case usesResource.MatchString(one.Expression):
			c.reading.warn(at, "fails for requests that are not about a resource, "+outcome, "put the condition has(request.resourceAttributes) before it")
			return
		case usesNonResource.MatchString(one.Expression):
			c.reading.warn(at, "fails for requests that are about a resource, "+outcome, "put the condition has(request.nonResourceAttributes) before it")
			return
		}
	}
}
