//go:build integration

package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/test/cluster"
)

type (
	configuration = admissionregistrationv1.ValidatingWebhookConfiguration
	hook          = admissionregistrationv1.ValidatingWebhook
)

const injector = "system:serviceaccount:cert-manager:cert-manager-cainjector"

func granular(f func(*hook)) func(*configuration) {
	return func(c *configuration) { f(&c.Webhooks[0]) }
}

func ptr[T any](v T) *T { return &v }

// TestA5_Guard: no user can narrow or loosen fieldperm's configurations, not even a member of system:masters, which may only delete the
// configuration for barriers. All other changes pass, and also each of fieldperm's own changes.
// named returns a webhook with another name.
func named(h hook, name string) hook {
	h.Name = name
	return h
}

func TestA5_Guard(t *testing.T) {
	g := startGuarded(t)
	g.await(t)
	rules := webhooks.Writes.On([]v1alpha1.ResourceRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}}, {APIGroups: []string{""}, Resources: []string{"secrets"}}})
	live, err := g.configurations(t, g.own).Get(t.Context(), webhooks.RESTName, metav1.GetOptions{})
	must(t, err)
	g.keep(t, webhooks.UncoveredConfiguration(live.Webhooks[0].ClientConfig, rules))
	must(t, g.change(t, g.cainjector, webhooks.RESTName, func(c *configuration) {
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = g.ca
		}
	}))

	t.Run("Tampering", g.tampering)
	t.Run("Legitimate", g.legitimate)
	t.Run("Create", g.create)
	t.Run("OwnUser", g.ownUser)
	t.Run("Uninstall", g.uninstall)
}

func (g *guarded) tampering(t *testing.T) {
	ignore, exact, some, namespaced := admissionregistrationv1.Ignore, admissionregistrationv1.Exact, admissionregistrationv1.SideEffectClassNoneOnDryRun, admissionregistrationv1.NamespacedScope
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	expression := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	never := admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"}
	for name, c := range map[string]struct {
		change func(*configuration)
		want   string
		// ownMay is true if fieldperm's own user may make the change.
		ownMay bool
	}{
		"failurePolicy":       {granular(func(h *hook) { h.FailurePolicy = &ignore }), "must be Fail", false},
		"matchPolicy":         {granular(func(h *hook) { h.MatchPolicy = &exact }), "must be Equivalent", false},
		"sideEffects":         {granular(func(h *hook) { h.SideEffects = &some }), "sideEffects must be None", false},
		"review versions":     {granular(func(h *hook) { h.AdmissionReviewVersions = []string{"v1beta1", "v1"} }), "the only one of admissionReviewVersions", false},
		"namespaceSelector":   {granular(func(h *hook) { h.NamespaceSelector = selector }), "no namespaceSelector", false},
		"objectSelector":      {granular(func(h *hook) { h.ObjectSelector = expression }), "no objectSelector", false},
		"selector on schemas": {func(c *configuration) { c.Webhooks[1].ObjectSelector = selector }, "no objectSelector", false},
		"condition added":     {granular(func(h *hook) { h.MatchConditions = append(h.MatchConditions, never) }), "the generated matchConditions", false},
		"condition changed":   {granular(func(h *hook) { h.MatchConditions[0].Expression += " && false" }), "the generated matchConditions", false},
		"condition of another webhook": {func(c *configuration) {
			c.Webhooks[1].MatchConditions[0].Expression = c.Webhooks[0].MatchConditions[0].Expression
		},
			"the generated matchConditions", false},
		"no granular":         {func(c *configuration) { c.Webhooks = c.Webhooks[1:] }, "must have the webhook granular", false},
		"no schemas":          {func(c *configuration) { c.Webhooks = c.Webhooks[:1] }, "no webhook may be taken away", false},
		"no webhook":          {func(c *configuration) { c.Webhooks = nil }, "must have the webhook granular", false},
		"renamed":             {granular(func(h *hook) { h.Name = "other.fieldperm.dev" }), "must have the webhook granular", false},
		"group":               {granular(func(h *hook) { h.Rules[0].APIGroups = []string{"", "apps"} }), "with a rule for CREATE, UPDATE and DELETE", false},
		"version":             {granular(func(h *hook) { h.Rules[0].APIVersions = []string{"v1"} }), "with a rule for CREATE, UPDATE and DELETE", false},
		"resource":            {granular(func(h *hook) { h.Rules[0].Resources = []string{"*"} }), "with a rule for CREATE, UPDATE and DELETE", false},
		"operation":           {granular(func(h *hook) { h.Rules[0].Operations = h.Rules[0].Operations[:1] }), "with a rule for CREATE, UPDATE and DELETE", false},
		"no deletions":        {granular(func(h *hook) { h.Rules[0].Operations = h.Rules[0].Operations[:2] }), "with a rule for CREATE, UPDATE and DELETE", false},
		"no connections":      {granular(func(h *hook) { h.Rules = h.Rules[:1] }), "with a rule for CREATE, UPDATE and DELETE", false},
		"one connection":      {granular(func(h *hook) { h.Rules[1].Resources = h.Rules[1].Resources[1:] }), "with a rule for CREATE, UPDATE and DELETE", false},
		"scope":               {granular(func(h *hook) { h.Rules[0].Scope = &namespaced }), "with a rule for CREATE, UPDATE and DELETE", false},
		"no rule":             {granular(func(h *hook) { h.Rules = nil }), "with a rule for CREATE, UPDATE and DELETE", false},
		"rule of schemas":     {func(c *configuration) { c.Webhooks[1].Rules = c.Webhooks[1].Rules[:1] }, "may not be narrowed", true},
		"resource in a rule":  {func(c *configuration) { c.Webhooks[1].Rules[1].Resources = c.Webhooks[1].Rules[1].Resources[:1] }, "may not be narrowed", true},
		"scope of schemas":    {func(c *configuration) { c.Webhooks[1].Rules[1].Scope = &namespaced }, "may not be narrowed", true},
		"a webhook of others": {func(c *configuration) { c.Webhooks = append(c.Webhooks, named(c.Webhooks[1], "other.example.com")) }, "no webhook but fieldperm's", true},
		"rules without end": {func(c *configuration) {
			for range 20 {
				c.Webhooks[1].Rules = append(c.Webhooks[1].Rules, c.Webhooks[1].Rules[0])
			}
		}, "at most 20 rules", true},
		"finalizer":       {func(c *configuration) { c.Finalizers = nil }, "must keep the finalizer", false},
		"other finalizer": {func(c *configuration) { c.Finalizers = []string{"example.com/other"} }, "must keep the finalizer", false},
		"service":         {granular(func(h *hook) { h.ClientConfig.Service.Name = "other" }), "the address", true},
		"path":            {granular(func(h *hook) { h.ClientConfig.Service.Path = ptr("/admit/other") }), "the address", true},
		"url": {granular(func(h *hook) {
			h.ClientConfig.Service, h.ClientConfig.URL = nil, ptr("https://example.com/admit/granular")
		}), "the address", true},
		"CA bundle":         {granular(func(h *hook) { h.ClientConfig.CABundle = g.otherCA }), "the CA bundle", true},
		"no CA bundle":      {granular(func(h *hook) { h.ClientConfig.CABundle = nil }), "the CA bundle", true},
		"CA bundle schemas": {func(c *configuration) { c.Webhooks[1].ClientConfig.CABundle = g.otherCA }, "the CA bundle", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, user := range []*cluster.User{g.masters, g.root} {
				wanted(t, g.change(t, user, webhooks.RESTName, c.change), c.want)
			}
			if !c.ownMay {
				wanted(t, g.change(t, g.own, webhooks.RESTName, c.change), c.want)
				return
			}
			g.undo(t, webhooks.RESTName, func() { must(t, g.change(t, g.own, webhooks.RESTName, c.change)) })
		})
	}
	for name, c := range map[string]struct {
		change func(*configuration)
		want   string
		ownMay bool
	}{
		"failurePolicy":   {granular(func(h *hook) { h.FailurePolicy = &ignore }), "must be Fail", false},
		"selector":        {granular(func(h *hook) { h.NamespaceSelector = expression }), "no namespaceSelector", false},
		"condition":       {granular(func(h *hook) { h.MatchConditions = append(h.MatchConditions, never) }), "the generated matchConditions", false},
		"no webhook":      {func(c *configuration) { c.Webhooks = nil }, "no webhook may be taken away", true},
		"rule taken away": {granular(func(h *hook) { h.Rules = h.Rules[:1] }), "are fieldperm's to change", true},
		"rule narrowed":   {granular(func(h *hook) { h.Rules[0].Resources = []string{"deployments"} }), "are fieldperm's to change", true},
		"rule widened":    {granular(func(h *hook) { h.Rules[0].APIGroups = []string{"*"} }), "are fieldperm's to change", true},
		"no rules":        {granular(func(h *hook) { h.Rules = nil }), "are fieldperm's to change", true},
		"operation":       {granular(func(h *hook) { h.Rules[0].Operations = h.Rules[0].Operations[:1] }), "are fieldperm's to change", true},
		"address":         {granular(func(h *hook) { h.ClientConfig.Service.Namespace = "other" }), "the address", true},
		"no owner but this": {func(c *configuration) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "gone"}}
		}, "no other owners", true},
		"review versions":  {granular(func(h *hook) { h.AdmissionReviewVersions = []string{"v1beta1", "v1"} }), "the only one of admissionReviewVersions", false},
		"finalizer":        {func(c *configuration) { c.Finalizers = []string{"example.com/a"} }, "no finalizers", true},
		"its name changed": {granular(func(h *hook) { h.Name = "other.fieldperm.dev" }), "no webhook may be taken away", true},
	} {
		t.Run("Uncovered/"+name, func(t *testing.T) {
			for _, user := range []*cluster.User{g.masters, g.root} {
				wanted(t, g.change(t, user, webhooks.UncoveredName, c.change), c.want)
			}
			if !c.ownMay {
				wanted(t, g.change(t, g.own, webhooks.UncoveredName, c.change), c.want)
				return
			}
			g.undo(t, webhooks.UncoveredName, func() { must(t, g.change(t, g.own, webhooks.UncoveredName, c.change)) })
		})
	}
	t.Run("Uncovered/deleted", func(t *testing.T) {
		const refusal = "may be deleted by fieldperm and members of system:masters only"
		wanted(t, g.configurations(t, g.root).Delete(t.Context(), webhooks.UncoveredName, metav1.DeleteOptions{}), refusal)
		wanted(t, g.configurations(t, g.root).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + webhooks.UncoveredName}), refusal)
		// This is the break-glass command. test/e2e has a separate test of its effects.
		must(t, g.configurations(t, g.masters).Delete(t.Context(), webhooks.UncoveredName, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	})
	t.Run("Uncovered/version of the writer", func(t *testing.T) {
		stamp := func(version string) func(*configuration) {
			return func(c *configuration) { c.Annotations = map[string]string{webhooks.WriterAnnotation: version} }
		}
		for _, user := range []*cluster.User{g.masters, g.root} {
			wanted(t, g.change(t, user, webhooks.UncoveredName, stamp("v999.0.0")), "is fieldperm's to change")
		}
		must(t, g.change(t, g.own, webhooks.UncoveredName, stamp("v1.0.0")))
		wanted(t, g.change(t, g.root, webhooks.UncoveredName, func(c *configuration) { c.Annotations = nil }), "is fieldperm's to change")
		must(t, g.change(t, g.root, webhooks.UncoveredName, func(c *configuration) { c.Annotations["a"] = "b" }))
		must(t, g.change(t, g.own, webhooks.UncoveredName, func(c *configuration) { c.Annotations = nil }))
	})
}

func (g *guarded) legitimate(t *testing.T) {
	// The generated file has no CA bundle, so that another apply keeps the bundle that was filled in.
	g.kubectl(t, g.root, g.files["webhooks.yaml"], "apply", "--server-side", "--force-conflicts", "-f", "-")
	live, err := g.configurations(t, g.own).Get(t.Context(), webhooks.RESTName, metav1.GetOptions{})
	must(t, err)
	if !bytes.Equal(live.Webhooks[0].ClientConfig.CABundle, g.ca) {
		t.Error("applying the generated file again changed the CA bundle")
	}
	// Use the maximum number of rules: the policy must stay within its cost budget.
	var many []v1alpha1.ResourceRule
	for i := range 500 {
		many = append(many, v1alpha1.ResourceRule{APIGroups: []string{fmt.Sprintf("group-%d.example.com", i)}, Resources: []string{"ones", "ones/status", "twos", "twos/status", "threes", "threes/status"}})
	}
	g.keep(t, webhooks.UncoveredConfiguration(live.Webhooks[0].ClientConfig, webhooks.Writes.On(many)))
	for _, user := range []*cluster.User{g.masters, g.root, g.own} {
		for _, name := range []string{webhooks.RESTName, webhooks.UncoveredName} {
			must(t, g.change(t, user, name, func(c *configuration) {
				c.Labels["touched-by"], c.Annotations = strings.ReplaceAll(user.Name, ":", "-"), map[string]string{"a": user.Name}
			}))
			must(t, g.change(t, user, name, func(c *configuration) { c.ManagedFields = []metav1.ManagedFieldsEntry{{}} }))
		}
		must(t, g.change(t, user, webhooks.RESTName, func(c *configuration) {
			c.Finalizers = append(c.Finalizers, "example.com/"+strings.ReplaceAll(user.Name, ":", "-"))
			c.Webhooks[0].TimeoutSeconds = ptr(int32(5))
			c.Webhooks[0].Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
			c.Webhooks[1].Rules[0].Resources = []string{"customresourcedefinitions", "customresourcedefinitions/status"}
		}))
		must(t, g.change(t, user, webhooks.RESTName, func(c *configuration) { c.Finalizers = []string{webhooks.Finalizer} }))
	}
}

// create tests a second installation of fieldperm's configurations after the first one was removed by force.
func (g *guarded) create(t *testing.T) {
	client := g.configurations(t, g.masters)
	for name, change := range map[string]func(*configuration){
		"must keep the finalizer":      func(c *configuration) { c.Finalizers = nil },
		"must be Fail":                 granular(func(h *hook) { h.FailurePolicy = ptr(admissionregistrationv1.Ignore) }),
		"with a rule for CREATE":       granular(func(h *hook) { h.Rules[0].Resources = []string{"pods"} }),
		"the generated matchCondition": granular(func(h *hook) { h.MatchConditions[0].Expression = "false" }),
	} {
		c := webhooks.GranularConfiguration(g.options.Options)
		change(c)
		_, err := client.Create(t.Context(), c, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		// The API server evaluates the policy before it checks whether the name exists.
		wanted(t, err, name)
	}
	other := webhooks.GranularConfiguration(g.options.Options)
	other.Name, other.Finalizers = "other", nil
	other.Webhooks[0].FailurePolicy = ptr(admissionregistrationv1.Ignore)
	_, err := client.Create(t.Context(), other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
}

// ownUser tests the limits that rbac.yaml sets: fieldperm may impersonate one user with one key, and may create no other configuration.
func (g *guarded) ownUser(t *testing.T) {
	other := webhooks.UncoveredConfiguration(admissionregistrationv1.WebhookClientConfig{}, nil)
	other.Name = "other"
	_, err := g.configurations(t, g.own).Create(t.Context(), other, metav1.CreateOptions{})
	refusedAs(t, err, g.own.Name, `cannot create resource "validatingwebhookconfigurations"`)
	_, err = g.configurations(t, g.own).Patch(t.Context(), "other", types.ApplyPatchType, []byte(encode(t, other)), metav1.PatchOptions{FieldManager: "fieldperm"})
	refusedAs(t, err, g.own.Name, `cannot patch resource "validatingwebhookconfigurations"`)

	impersonate := func(as rest.ImpersonationConfig) error {
		config := rest.CopyConfig(g.own.Config)
		config.Impersonate = as
		c, err := kubernetes.NewForConfig(config)
		must(t, err)
		_, err = c.CoreV1().ConfigMaps("kube-system").Patch(t.Context(), "extension-apiserver-authentication", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	nonce := map[string][]string{admission.ProbeKey: {"nonce1", "nonce2"}}
	refusedAs(t, impersonate(rest.ImpersonationConfig{UserName: admission.ProbeUser, Extra: nonce}), admission.ProbeUser, `cannot patch resource "configmaps"`)
	for _, as := range []rest.ImpersonationConfig{
		{UserName: "admin", Extra: nonce},
		{UserName: admission.ProbeUser, Groups: []string{"system:masters"}},
		{UserName: admission.ProbeUser, Extra: map[string][]string{"example.com/other": {"x"}}},
	} {
		refusedAs(t, impersonate(as), g.own.Name, "cannot impersonate resource")
	}
}

// uninstall tests the order in which fieldperm is removed: only fieldperm may remove the finalizer, and the deletion is complete only after
// that.
func (g *guarded) uninstall(t *testing.T) {
	finalizer := func(c *configuration) { c.Finalizers = nil }
	g.kubectl(t, g.root, "", "delete", "validatingwebhookconfiguration", webhooks.RESTName, "--wait=false")
	live, err := g.configurations(t, g.own).Get(t.Context(), webhooks.RESTName, metav1.GetOptions{})
	must(t, err)
	if live.DeletionTimestamp == nil {
		t.Fatal("the configuration is not terminating")
	}
	for _, user := range []*cluster.User{g.masters, g.root} {
		wanted(t, g.change(t, user, webhooks.RESTName, finalizer), "must keep the finalizer")
	}
	must(t, g.configurations(t, g.own).Delete(t.Context(), webhooks.UncoveredName, metav1.DeleteOptions{}))
	must(t, g.change(t, g.own, webhooks.RESTName, finalizer))
	if _, err := g.configurations(t, g.own).Get(t.Context(), webhooks.RESTName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}

	// The policy can be disabled by deleting its binding.
	g.kubectl(t, g.root, g.files["webhooks.yaml"], "apply", "--server-side", "-f", "-")
	g.kubectl(t, g.root, "", "delete", "validatingadmissionpolicybinding", webhooks.GuardName)
	deadline := time.Now().Add(30 * time.Second)
	for err = g.change(t, g.root, webhooks.RESTName, finalizer); err != nil && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		err = g.change(t, g.root, webhooks.RESTName, finalizer)
	}
	must(t, err)
}
