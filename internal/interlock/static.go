package interlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/generators"
)

// Static returns why a webhook configuration does not enforce on every resource what an Allow of
// /authorize promises, nil if it does. ca, if there is any, are the CAs that the webhook may trust, and
// no others.
func Static(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, ca []byte) error {
	if configuration == nil {
		return errors.New("webhook configuration: does not exist: apply webhooks.yaml of fieldperm-gen manifests --rest")
	}
	fault := func(format string, args ...any) error {
		return fmt.Errorf("webhook configuration %q: %s: apply webhooks.yaml of fieldperm-gen manifests --rest again", configuration.Name, fmt.Sprintf(format, args...))
	}
	if configuration.DeletionTimestamp != nil {
		return fmt.Errorf("webhook configuration %q: is being deleted: nothing is let through any more", configuration.Name)
	}
	if !slices.Contains(configuration.Finalizers, generators.Finalizer) {
		return fault("lacks the finalizer %q, so that it could be deleted before cached permissions are gone", generators.Finalizer)
	}
	at := slices.IndexFunc(configuration.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == generators.GranularWebhook })
	if at < 0 {
		return fault("has no webhook %q", generators.GranularWebhook)
	}
	webhook := &configuration.Webhooks[at]
	switch {
	case webhook.FailurePolicy == nil || *webhook.FailurePolicy != admissionregistrationv1.Fail:
		return fault("webhook %q has not failurePolicy Fail", webhook.Name)
	case webhook.MatchPolicy == nil || *webhook.MatchPolicy != admissionregistrationv1.Equivalent:
		return fault("webhook %q has not matchPolicy Equivalent", webhook.Name)
	case webhook.SideEffects == nil || *webhook.SideEffects != admissionregistrationv1.SideEffectClassNone:
		return fault("webhook %q has not sideEffects None", webhook.Name)
	case selects(webhook.NamespaceSelector):
		return fault("webhook %q has a namespaceSelector", webhook.Name)
	case selects(webhook.ObjectSelector):
		return fault("webhook %q has an objectSelector", webhook.Name)
	case !slices.Contains(webhook.AdmissionReviewVersions, "v1"):
		return fault("webhook %q does not take AdmissionReview v1", webhook.Name)
	case !callsGranular(webhook.ClientConfig):
		return fault("webhook %q does not call %s", webhook.Name, generators.GranularPath)
	case len(ca) > 0 && !among(webhook.ClientConfig.CABundle, ca):
		return fault("webhook %q trusts another CA than fieldperm's", webhook.Name)
	}
	for _, condition := range webhook.MatchConditions {
		// Any other condition could leave out what this one lets in.
		if condition.Expression != generators.LacksGeneric {
			return fault("webhook %q has a match condition %q that is not the generated one", webhook.Name, condition.Name)
		}
	}
	for _, operation := range []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update} {
		if !slices.ContainsFunc(webhook.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return coversAll(&r, operation) }) {
			return fault("webhook %q has no rule for %s of every resource and subresource", webhook.Name, operation)
		}
	}
	return nil
}

// among reports whether every CA of a bundle is one of the others, and there is any. While CAs are
// exchanged the one bundle may have more than the other.
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
		return strings.HasPrefix(*c.URL, "https://") && strings.HasSuffix(*c.URL, generators.GranularPath)
	}
	return c.Service != nil && c.Service.Path != nil && *c.Service.Path == generators.GranularPath
}

// coversAll reports whether one rule is about an operation on everything.
func coversAll(r *admissionregistrationv1.RuleWithOperations, operation admissionregistrationv1.OperationType) bool {
	return (slices.Contains(r.Operations, operation) || slices.Contains(r.Operations, admissionregistrationv1.OperationAll)) &&
		slices.Contains(r.APIGroups, "*") && slices.Contains(r.APIVersions, "*") && slices.Contains(r.Resources, "*/*") &&
		(r.Scope == nil || *r.Scope == admissionregistrationv1.AllScopes)
}
