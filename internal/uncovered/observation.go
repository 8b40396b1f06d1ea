package uncovered

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// observation is the last reading of the configuration. The zero observation enforces nothing.
type observation struct {
	at time.Time
	// fault says why nothing is enforced, "" if there is no fault.
	fault string
	// newer is the version that wrote the configuration, if it is newer than this one, which then cannot judge it.
	newer string
	// version identifies the reading. state is what API servers answer with.
	version, state string
	rules          []webhooks.Rule
}

// Enforced reports whether the rules in the API server include all of these rules. If not, it returns the reason. Whether API servers have loaded them,
// interlock.Barriers says.
func (k *Keeper) Enforced(rules []webhooks.Rule) (enforced bool, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen.enforced(rules, time.Now())
}

// Newer returns the version of fieldperm that wrote the configuration, if it is newer than this one and so may contain parts that
// this one does not know. Do not rely on Enforced in this case.
func (k *Keeper) Newer() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen.newer
}

// State returns the state of the configuration that API servers are to answer with, "" while there is none.
func (k *Keeper) State() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen.state
}

func (o *observation) enforced(rules []webhooks.Rule, now time.Time) (bool, string) {
	if len(rules) == 0 {
		return true, "needs no rule: there is no barrier"
	}
	switch {
	case o.at.IsZero():
		return false, "the webhook configuration has not been read yet"
	case now.Sub(o.at) > fresh:
		return false, "the webhook configuration could not be read since " + o.at.UTC().Format(time.RFC3339)
	case o.fault != "":
		return false, o.fault
	}
	if lacking := webhooks.Subtract(rules, o.rules); len(lacking) > 0 {
		return false, "the webhook configuration has no rule for " + describe(lacking) + " yet"
	}
	return true, "the rules are in the webhook configuration"
}

// describe returns the first resource of rules, and its operations if they are not those of a barrier.
func describe(rules []webhooks.Rule) string {
	first := rules[0]
	name := first.Resources[0]
	if group := first.APIGroups[0]; group != "" {
		name += "." + group
	}
	if first.Operations == webhooks.Writes {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%s of %q", first.Operations, name)
}

// observed returns the state in the API server, and whether it enforces. For that, everything except the rules must be as in want.
func observed(live, want *admissionregistrationv1.ValidatingWebhookConfiguration) observation {
	out := observation{rules: rulesOf(live)}
	if live != nil {
		out.version = string(live.UID) + "/" + live.ResourceVersion
		out.state = webhooks.State(live)
	}
	switch {
	case live == nil:
		out.fault = fmt.Sprintf("webhook configuration %q does not exist yet", want.Name)
	case live.DeletionTimestamp != nil:
		out.fault = fmt.Sprintf("webhook configuration %q is being deleted", live.Name)
	case len(out.rules) > 0 && !enforces(live, want):
		out.fault = fmt.Sprintf("webhook configuration %q was changed by another client", live.Name)
	}
	return out
}

// same reports whether nothing was written between the two observations.
func (o observation) same(before observation) bool {
	return o.version == before.version && reflect.DeepEqual(o.rules, before.rules)
}

// note stores an observation. If it differs from the previous one, note calls Observed.
func (k *Keeper) note(next observation) {
	next.at = time.Now()
	k.mu.Lock()
	before := k.seen
	k.seen = next
	k.mu.Unlock()
	if k.config.Observed != nil && (before.at.IsZero() || next.fault != before.fault || next.newer != before.newer || !next.same(before)) {
		k.config.Observed()
	}
}

// enforces compares the webhooks for barriers without their rules.
func enforces(live, want *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	l, w := webhookOf(live), webhookOf(want)
	if l == nil || w == nil {
		return false
	}
	w = w.DeepCopy()
	w.Rules = l.Rules
	return sameWebhook(l, w)
}

// Same reports whether nothing must be written into a live configuration of fieldperm. Additions of others are ignored.
func Same(live, want *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	if live == nil {
		return false
	}
	for name, value := range want.Labels {
		if live.Labels[name] != value {
			return false
		}
	}
	for _, owner := range want.OwnerReferences {
		if !slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
			return false
		}
	}
	for name, value := range want.Annotations {
		if live.Annotations[name] != value {
			return false
		}
	}
	for _, name := range ownWebhooks {
		l, w := webhookNamed(live, name), webhookNamed(want, name)
		if (l == nil) != (w == nil) || l != nil && !sameWebhook(l, w) {
			return false
		}
	}
	return true
}

// webhookOf returns the webhook for barriers, nil if there is none.
func webhookOf(c *admissionregistrationv1.ValidatingWebhookConfiguration) *admissionregistrationv1.ValidatingWebhook {
	return webhookNamed(c, webhooks.UncoveredWebhookName)
}

func webhookNamed(c *admissionregistrationv1.ValidatingWebhookConfiguration, name string) *admissionregistrationv1.ValidatingWebhook {
	if c == nil {
		return nil
	}
	for i := range c.Webhooks {
		if c.Webhooks[i].Name == name {
			return &c.Webhooks[i]
		}
	}
	return nil
}

// sameWebhook treats a missing selector as an empty one, because the API server sets the empty one.
func sameWebhook(a, b *admissionregistrationv1.ValidatingWebhook) bool {
	return apiequality.Semantic.DeepEqual(selecting(a), selecting(b))
}

func selecting(w *admissionregistrationv1.ValidatingWebhook) *admissionregistrationv1.ValidatingWebhook {
	out := w.DeepCopy()
	for _, selector := range []**metav1.LabelSelector{&out.NamespaceSelector, &out.ObjectSelector} {
		if *selector == nil {
			*selector = &metav1.LabelSelector{}
		}
	}
	return out
}

// rulesOf returns the rules of the webhook for barriers that match every version and scope.
func rulesOf(c *admissionregistrationv1.ValidatingWebhookConfiguration) []webhooks.Rule {
	webhook := webhookOf(c)
	if webhook == nil {
		return nil
	}
	var out []webhooks.Rule
	for _, rule := range webhook.Rules {
		if !slices.Contains(rule.APIVersions, "*") || rule.Scope != nil && *rule.Scope != admissionregistrationv1.AllScopes {
			continue
		}
		for _, operations := range webhooks.OperationsOf(rule.Operations) {
			out = append(out, operations.On([]v1alpha1.ResourceRule{{APIGroups: rule.APIGroups, Resources: rule.Resources}})...)
		}
	}
	return webhooks.Union(out)
}
