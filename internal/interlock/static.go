package interlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// Static returns why a webhook configuration does not enforce, on every resource, what an Allow of /authorize promises. It returns
// nil if it does. If ca is not empty, the webhook may trust only these CAs.
func Static(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, ca []byte) error {
	if configuration == nil {
		return errors.New("webhook configuration: does not exist: apply webhooks.yaml of fieldperm-gen manifests --rest")
	}
	fault := func(format string, args ...any) error {
		return fmt.Errorf("webhook configuration %q: %w: apply webhooks.yaml of fieldperm-gen manifests --rest again", configuration.Name, fmt.Errorf(format, args...))
	}
	if configuration.DeletionTimestamp != nil {
		return fmt.Errorf("webhook configuration %q: is being deleted: nothing is let through any more", configuration.Name)
	}
	if !slices.Contains(configuration.Finalizers, webhooks.Finalizer) {
		return fault("lacks the finalizer %q, so that it could be deleted before cached permissions are gone", webhooks.Finalizer)
	}
	at := slices.IndexFunc(configuration.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == webhooks.GranularWebhook })
	if at < 0 {
		return fault("has no webhook %q", webhooks.GranularWebhook)
	}
	webhook := &configuration.Webhooks[at]
	if err := enforces(webhook); err != nil {
		return fault("webhook %q %w", webhook.Name, err)
	}
	if len(ca) > 0 && !among(webhook.ClientConfig.CABundle, ca) {
		return fault("webhook %q trusts another CA than fieldperm's", webhook.Name)
	}
	return nil
}

// enforces returns why the API servers may not send a webhook every write of a holder of the marker. It returns nil if they do. It
// cannot tell whether the webhook calls fieldperm or another server with the same path.
func enforces(webhook *admissionregistrationv1.ValidatingWebhook) error {
	switch {
	case webhook.FailurePolicy == nil || *webhook.FailurePolicy != admissionregistrationv1.Fail:
		return errors.New("has not failurePolicy Fail")
	case webhook.MatchPolicy == nil || *webhook.MatchPolicy != admissionregistrationv1.Equivalent:
		return errors.New("has not matchPolicy Equivalent")
	case webhook.SideEffects == nil || *webhook.SideEffects != admissionregistrationv1.SideEffectClassNone:
		return errors.New("has not sideEffects None")
	case selects(webhook.NamespaceSelector):
		return errors.New("has a namespaceSelector")
	case selects(webhook.ObjectSelector):
		return errors.New("has an objectSelector")
	case !slices.Contains(webhook.AdmissionReviewVersions, "v1"):
		return errors.New("does not take AdmissionReview v1")
	case !callsGranular(webhook.ClientConfig):
		return fmt.Errorf("does not call %s", webhooks.GranularPath)
	}
	for _, condition := range webhook.MatchConditions {
		// Any other condition could exclude requests that the known condition includes.
		if condition.Expression != webhooks.LacksGeneric {
			return fmt.Errorf("has a match condition %q that is not the generated one", condition.Name)
		}
	}
	for _, operation := range []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete} {
		if !slices.ContainsFunc(webhook.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return coversAll(&r, operation) }) {
			return fmt.Errorf("has no rule for %s of every resource and subresource", operation)
		}
	}
	if !slices.ContainsFunc(webhook.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return coversConnections(&r) }) {
		return fmt.Errorf("has no rule for CONNECT of %s", strings.Join(webhooks.Connections(), ", "))
	}
	return nil
}

// among reports whether bundle is not empty and every CA in it is one of others. While CAs are rotated, others may have more CAs
// than bundle.
func among(bundle, others []byte) bool {
	trusted, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return false
	}
	known, err := cert.ParseCertsPEM(others)
	if err != nil {
		return false
	}
	for _, ca := range trusted {
		if !slices.ContainsFunc(known, ca.Equal) {
			return false
		}
	}
	return len(trusted) > 0
}

func selects(s *metav1.LabelSelector) bool {
	return s != nil && (len(s.MatchLabels) > 0 || len(s.MatchExpressions) > 0)
}

func callsGranular(c admissionregistrationv1.WebhookClientConfig) bool {
	if c.URL != nil {
		return strings.HasPrefix(*c.URL, "https://") && strings.HasSuffix(*c.URL, webhooks.GranularPath)
	}
	return c.Service != nil && c.Service.Path != nil && *c.Service.Path == webhooks.GranularPath
}

// coversConnections reports whether one rule matches all connections to Pods.
func coversConnections(r *admissionregistrationv1.RuleWithOperations) bool {
	missing := func(name string) bool { return !slices.Contains(r.Resources, name) }
	return matches(r, admissionregistrationv1.Connect, "") && !slices.ContainsFunc(webhooks.Connections(), missing)
}

// coversAll reports whether one rule matches an operation on all resources.
func coversAll(r *admissionregistrationv1.RuleWithOperations, operation admissionregistrationv1.OperationType) bool {
	return matches(r, operation, "*") && slices.Contains(r.Resources, "*/*")
}

// matches reports whether a rule matches an operation in every version and scope of a group, for its resources.
func matches(r *admissionregistrationv1.RuleWithOperations, operation admissionregistrationv1.OperationType, group string) bool {
	return (slices.Contains(r.Operations, operation) || slices.Contains(r.Operations, admissionregistrationv1.OperationAll)) &&
		slices.Contains(r.APIGroups, group) && slices.Contains(r.APIVersions, "*") &&
		(r.Scope == nil || *r.Scope == admissionregistrationv1.AllScopes)
}
