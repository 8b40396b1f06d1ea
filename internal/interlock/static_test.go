package interlock

import (
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

func TestA5_GeneratedConfigurationIsProof(t *testing.T) {
	configuration := granular(t)
	ca := configuration.Webhooks[0].ClientConfig.CABundle
	if err := Static(configuration, ca); err != nil {
		t.Error(err)
	}
	// While CAs are rotated, another replica may know one CA more.
	if err := Static(configuration, append(testCA(t, "next"), ca...)); err != nil {
		t.Error(err)
	}
	service := granular(t)
	path := webhooks.GranularPath
	service.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "n", Name: "s", Path: &path}}
	if err := Static(service, nil); err != nil {
		t.Error(err)
	}
	// Rules that match more than necessary are not a fault.
	wider := granular(t)
	wider.Webhooks[0].MatchConditions = nil
	wider.Webhooks[0].Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	if err := Static(wider, nil); err != nil {
		t.Error(err)
	}
}

func TestA5_AWeakerConfigurationIsNoProof(t *testing.T) {
	type webhook = admissionregistrationv1.ValidatingWebhook
	for name, c := range map[string]struct {
		change func(*admissionregistrationv1.ValidatingWebhookConfiguration, *webhook)
		says   string
	}{
		"being deleted": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration, _ *webhook) {
			c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, "deleted"},
		"no finalizer": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration, _ *webhook) {
			c.Finalizers = []string{"other"}
		}, "finalizer"},
		"no webhook": {func(c *admissionregistrationv1.ValidatingWebhookConfiguration, _ *webhook) {
			c.Webhooks = c.Webhooks[1:]
		}, "granular.fieldperm.dev"},
		"another name": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Name = "x.fieldperm.dev"
		}, "granular.fieldperm.dev"},
		"Ignore": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			p := admissionregistrationv1.Ignore
			w.FailurePolicy = &p
		}, "failurePolicy"},
		"no failurePolicy": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) { w.FailurePolicy = nil }, "failurePolicy"},
		"Exact": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			p := admissionregistrationv1.Exact
			w.MatchPolicy = &p
		}, "matchPolicy"},
		"side effects": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			p := admissionregistrationv1.SideEffectClassSome
			w.SideEffects = &p
		}, "sideEffects"},
		"namespace labels": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, "namespaceSelector"},
		"object labels": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		}, "objectSelector"},
		"another condition": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
		}, `"never"`},
		"changed condition": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.MatchConditions[0].Expression += " && false"
		}, "condition"},
		"UPDATE only": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[0].Operations = w.Rules[0].Operations[1:]
		}, "CREATE"},
		"CREATE only": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[0].Operations = w.Rules[0].Operations[:1]
		}, "UPDATE"},
		"no DELETE": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[0].Operations = w.Rules[0].Operations[:2]
		}, "DELETE"},
		"no CONNECT": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) { w.Rules = w.Rules[:1] }, "CONNECT"},
		"one connection": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[1].Resources = w.Rules[1].Resources[1:]
		}, "CONNECT"},
		"other group": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[1].APIGroups[0] = "apps"
		}, "CONNECT"},
		"other operation": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[1].Operations[0] = "CREATE"
		}, "CONNECT"},
		"one group": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[0].APIGroups = []string{"apps"}
		}, "no rule"},
		"one version": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[0].APIVersions = []string{"v1"}
		}, "no rule"},
		"no subresources": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.Rules[0].Resources = []string{"*"}
		}, "no rule"},
		"namespaced only": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			s := admissionregistrationv1.NamespacedScope
			w.Rules[0].Scope = &s
		}, "no rule"},
		"no rules": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) { w.Rules = nil }, "no rule"},
		"another path": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			u := "https://127.0.0.1:9443/admit/uncovered"
			w.ClientConfig.URL = &u
		}, "call"},
		"nowhere": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) { w.ClientConfig.URL = nil }, "call"},
		"another CA": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.ClientConfig.CABundle = append(testCA(t, "another"), w.ClientConfig.CABundle...)
		}, "CA"},
		"no CA": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.ClientConfig.CABundle = nil
		}, "CA"},
		"no v1": {func(_ *admissionregistrationv1.ValidatingWebhookConfiguration, w *webhook) {
			w.AdmissionReviewVersions = []string{"v1beta1"}
		}, "v1"},
	} {
		configuration := granular(t)
		trusted := configuration.Webhooks[0].ClientConfig.CABundle
		c.change(configuration, &configuration.Webhooks[0])
		if err := Static(configuration, trusted); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if Static(nil, nil) == nil {
		t.Error("no configuration is proof")
	}
}

func TestA5_AServiceIsCalledAtThePathOfGranularOnly(t *testing.T) {
	for name, path := range map[string]*string{"another": new(webhooks.UncoveredPath), "none": nil} {
		c := granular(t)
		c.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "n", Name: "s", Path: path}}
		if err := Static(c, nil); err == nil || !strings.Contains(err.Error(), "call") {
			t.Errorf("%s path: %v", name, err)
		}
	}
}
