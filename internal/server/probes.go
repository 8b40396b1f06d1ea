package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/probe"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/status"
	"github.com/fieldperm/fieldperm/internal/uncovered"
	"github.com/fieldperm/fieldperm/schema"
)

// guarded caches the barriers of objects with their endpoints, for the schema in force. Computing them is expensive.
type guarded struct {
	mu      sync.Mutex
	schema  *schema.Schema
	objects map[types.UID][]probe.Barrier
}

// of returns the barriers of an object that need a probe.
func (b *barriers) of(object *sources.ObjectState) []probe.Barrier {
	compiled := b.schemas.Schema()
	b.guarded.mu.Lock()
	defer b.guarded.mu.Unlock()
	if b.guarded.schema != compiled {
		b.guarded.schema, b.guarded.objects = compiled, map[types.UID][]probe.Barrier{}
	}
	if known, ok := b.guarded.objects[object.UID]; ok {
		return known
	}
	plurals := uncovered.Plurals(b.schemas.Documents().Topologies)
	var out []probe.Barrier
	for i := range object.Documents.Permissions {
		for _, kind := range object.Documents.Permissions[i].KindsIn(compiled) {
			out = append(out, probe.Barrier{Name: schema.Excluded, Endpoints: webhooks.KindEndpoints(compiled, kind, plurals)})
		}
	}
	for i := range object.Documents.Uncovered {
		d := &object.Documents.Uncovered[i]
		out = append(out, probe.Barrier{Name: d.Barrier(), Endpoints: webhooks.SetEndpoints(compiled, d, plurals)})
	}
	b.guarded.objects[object.UID] = out
	return out
}

// operationOf returns the operation of the probes of rules.
func operationOf(of webhooks.Operations) interlock.Operation {
	switch of {
	case webhooks.Deletions:
		return admissionv1.Delete
	case webhooks.Connects:
		return admissionv1.Connect
	case webhooks.Writes:
	}
	return ""
}

// ofPolicy returns the barriers of a policy that denies, with its rules. They have no endpoint if no probe can be sent.
func (b *barriers) ofPolicy(policy *v1alpha1.ConditionalPolicy, rules []webhooks.Rule) []probe.Barrier {
	documents := b.schemas.Documents()
	if documents == nil {
		return nil
	}
	var out []probe.Barrier
	for of, endpoints := range webhooks.RuleEndpoints(b.schemas.Schema(), rules, uncovered.Plurals(documents.Topologies)) {
		out = append(out, probe.Barrier{Name: policies.Barrier(policy.Name, &policy.Spec), Operation: operationOf(of), Endpoints: endpoints})
	}
	slices.SortFunc(out, func(a, b probe.Barrier) int { return strings.Compare(string(a.Operation), string(b.Operation)) })
	return out
}

// inForce returns the barriers to probe: those for which the webhook configuration has the rules.
func (b *barriers) inForce() []probe.Barrier {
	var out []probe.Barrier
	for _, policy := range b.schemas.policies.Denies() {
		rules := webhooks.Denied(&policy.Spec)
		if applied, _ := b.keeper.Enforced(rules); applied && len(rules) > 0 {
			out = append(out, b.ofPolicy(policy, rules)...)
		}
	}
	objects := b.schemas.Objects()
	for i := range objects {
		if !objects[i].Bars() {
			continue
		}
		if applied, _ := b.applied(&objects[i]); applied {
			out = append(out, b.of(&objects[i])...)
		}
	}
	return out
}

// shown is the maximum number of endpoints in a message.
const shown = 5

// refused returns the result of the probes of barriers.
func (b *barriers) refused(barriers []probe.Barrier) status.Enforcement {
	var all probe.Finding
	for _, one := range barriers {
		found := b.probes.Of(one)
		all.Refused = append(all.Refused, found.Refused...)
		all.Unbarred = append(all.Unbarred, found.Unbarred...)
		all.Unproven = append(all.Unproven, found.Unproven...)
	}
	refused := ""
	if len(all.Refused) > 0 {
		refused = "dry-run writes were refused through " + list(all.Refused, ", ")
	}
	switch {
	case len(all.Unbarred) > 0:
		return status.Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotRefused, Message: list(texts(all.Unbarred), "; ")}
	case len(all.Unproven) > 0:
		message := "the rules are in the webhook configuration; " + list(texts(all.Unproven), "; ")
		if refused != "" {
			message += "; " + refused
		}
		return status.Enforcement{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotProbed, Message: message, Unproven: true}
	case len(all.Refused) == 0:
		// The object names only kinds that are not installed: there is nothing to enforce and nothing to prove. If the status was
		// True before they were uninstalled, it must change.
		return status.Enforcement{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotProbed, Message: "the rules are in the webhook configuration"}
	}
	return status.Enforcement{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnforced, Message: refused}
}

func texts(errs []error) []string {
	out := make([]string, 0, len(errs))
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// list joins the first items, at most shown.
func list(items []string, separator string) string {
	out := strings.Join(items[:min(len(items), shown)], separator)
	if more := len(items) - shown; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
