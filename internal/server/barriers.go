package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/status"
	"github.com/fieldperm/fieldperm/internal/uncovered"
	"github.com/fieldperm/fieldperm/internal/version"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// barriers keeps the webhook configuration for barriers, finds out whether kube-apiservers have loaded it, and reports that in the status of objects. The
// keeper and the proof are nil without --uncovered-configuration.
type barriers struct {
	options *Options
	schemas *schemas
	trusted func() []byte
	status  *status.Writer
	keeper  *uncovered.Keeper
	proof   *interlock.Barriers
}

func newBarriers(o *Options, config *rest.Config, m *metrics.Metrics, known *schemas, certs *servingCertificates, e *enforcement) (*barriers, error) {
	b := &barriers{options: o, schemas: known, trusted: certs.trusted}
	b.status = status.New(status.Config{Client: known.client, Known: known.known, Enforced: b.enforced, States: known.states})
	known.compiled.add(known.forgetDigest)
	known.compiled.add(b.status.Changed)
	if o.UncoveredConfiguration == "" {
		return b, nil
	}
	clients, err := kubernetes.NewForConfig(client(config, "uncovered"))
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	documents := func() compile.Documents {
		if d := known.Documents(); d != nil {
			return *d
		}
		return compile.Documents{}
	}
	// What the servers are to answer changes with the configuration and with the objects.
	var observed signal
	keep := uncovered.Config{
		Client: clients, Name: o.UncoveredConfiguration, Owner: o.WebhookConfiguration, Version: version.Built(),
		Ready:    known.Ready,
		Schema:   known.Schema,
		Sets:     func() []sets.Document { return documents().Uncovered },
		Plurals:  func() map[runtimeschema.GroupKind]string { return uncovered.Plurals(documents().Topologies) },
		Unknown:  known.Unknown,
		Unread:   known.Unread,
		Denied:   known.denied,
		Applied:  m.UncoveredApplied,
		Observed: func() { observed.send() },
	}
	if o.WebhookURL != "" {
		keep.Reach = b.reach
	}
	b.keeper = uncovered.New(keep)
	b.proof = interlock.NewBarriers(interlock.BarriersConfig{
		Prober: &interlock.Prober{Tokens: e.tokens}, Servers: e.servers, State: b.keeper.State, Known: known.digest, Renew: b.keeper.Renew, Changed: b.status.Changed,
	})
	observed.add(b.status.Changed)
	observed.add(b.proof.ProbeAgain)
	e.loaded = b.all
	known.compiled.add(b.keeper.Changed)
	known.compiled.add(b.proof.ProbeAgain)
	e.serversChanged.add(b.proof.ProbeAgain)
	return b, nil
}

// reach returns the client configuration with which kube-apiservers call a path of --webhook-url.
func (b *barriers) reach(path string) (admissionregistrationv1.WebhookClientConfig, error) {
	bundle := b.trusted()
	if len(bundle) == 0 {
		return admissionregistrationv1.WebhookClientConfig{}, errors.New("--webhook-url: the CAs that signed fieldperm's certificate are not known yet")
	}
	return webhooks.ClientConfigAt(b.options.WebhookURL, path, bundle), nil
}

// enforced reports whether the barriers of an object are in force: whether kube-apiserver refuses the writes that they
// forbid.
func (b *barriers) enforced(object *sources.ObjectState) status.Enforcement {
	var rules []webhooks.Rule
	var policy *v1alpha1.ConditionalPolicy
	if object.Kind == v1alpha1.ConditionalPolicyKind {
		if policy = b.schemas.denies(object); policy != nil {
			rules = webhooks.Denied(&policy.Spec)
		}
	}
	if object.Kind == v1alpha1.ConditionalPolicyKind && len(rules) == 0 {
		return status.Enforcement{
			Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoBarriers,
			Message: "It denies nothing to users with the generic permission. Others are let through while it is proven that admission evaluates conditions.",
		}
	}
	if b.keeper == nil {
		return status.Enforcement{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotKept,
			Message: "This fieldperm keeps no webhook configuration for barriers: start it with --uncovered-configuration.",
		}
	}
	if newer := b.keeper.Newer(); newer != "" {
		return status.Enforcement{Reason: v1alpha1.ReasonNewerVersion, Message: fmt.Sprintf("The webhook for barriers was written by fieldperm %s, which is newer than this one and does not run: finish the upgrade.", newer)}
	}
	if policy != nil {
		return b.enforcedPolicy(policy, rules)
	}
	if outOfReach := floorResources(object); len(outOfReach) > 0 {
		return status.Enforcement{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOutOfReach,
			Message: fmt.Sprintf("No barrier reaches %s, which the control plane needs to go on running (rule W4): take it out of spec.resources.", strings.Join(outOfReach, ", ")),
		}
	}
	out := b.loaded(b.rules(object))
	for i := range object.Documents.Permissions {
		for _, warning := range admission.SchemaWarnings(&object.Documents.Permissions[i]) {
			out.Message += "; " + warning
		}
	}
	for i := range object.Documents.Uncovered {
		for _, warning := range admission.SetWarnings(b.schemas.Schema(), &object.Documents.Uncovered[i]) {
			out.Message += "; " + warning
		}
	}
	return out
}

// rules returns the rules that the barriers of an object need.
func (b *barriers) rules(object *sources.ObjectState) []webhooks.Rule {
	compiled := b.schemas.Schema()
	plurals := uncovered.Plurals(b.schemas.Documents().Topologies)
	var out []v1alpha1.ResourceRule
	for i := range object.Documents.Permissions {
		for _, kind := range object.Documents.Permissions[i].KindsIn(compiled) {
			out = append(out, webhooks.UncoveredKind(compiled, kind, plurals)...)
		}
	}
	for i := range object.Documents.Uncovered {
		out = append(out, webhooks.UncoveredSet(compiled, &object.Documents.Uncovered[i].Set.Spec, plurals)...)
	}
	return webhooks.Writes.On(out)
}

// loaded reports whether the stored configuration has rules, and every kube-apiserver has loaded it.
func (b *barriers) loaded(rules []webhooks.Rule) status.Enforcement {
	if applied, why := b.keeper.Enforced(rules); !applied {
		return status.Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotApplied, Message: why}
	}
	servers, err := b.proof.Missing()
	switch {
	case errors.Is(err, interlock.ErrOtherState):
		return status.Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotLoaded, Message: err.Error()}
	case err != nil:
		return status.Enforcement{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotProven, Message: "the rules are in the webhook configuration; " + err.Error(), Unproven: true}
	}
	if elsewhere := b.elsewhere(rules); len(elsewhere) > 0 {
		return status.Enforcement{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotProven,
			Message: fmt.Sprintf("every kube-apiserver has loaded the rules; whether the servers of %s have is not known: kube-apiserver passes these requests on", strings.Join(elsewhere, ", ")),
		}
	}
	return status.Enforcement{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnforced, Message: fmt.Sprintf("all kube-apiservers (%d) have loaded the rules", servers)}
}

// all reports whether the stored configuration has all rules that barriers need, and every kube-apiserver has loaded it.
func (b *barriers) all() bool {
	applied, _ := b.keeper.Enforced(b.keeper.Needed())
	_, err := b.proof.Missing()
	return applied && err == nil && b.keeper.Newer() == ""
}

// elsewhere returns the groups in rules that aggregated API servers serve.
func (b *barriers) elsewhere(rules []webhooks.Rule) []string {
	list := b.schemas.resources.Allowlist()
	var out []string
	for _, rule := range rules {
		for _, name := range rule.Resources {
			resource, _, _ := strings.Cut(name, "/")
			if served, ok := list.Served(rule.APIGroups[0], resource); ok && served.Aggregated {
				out = append(out, rule.APIGroups[0])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// enforcedPolicy returns the state of a policy that denies, with its rules.
func (b *barriers) enforcedPolicy(policy *v1alpha1.ConditionalPolicy, rules []webhooks.Rule) status.Enforcement {
	if outOfReach := admission.FloorResources(admission.PolicyResources(&policy.Spec)); len(outOfReach) > 0 {
		return status.Enforcement{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOutOfReach,
			Message: fmt.Sprintf("No Deny reaches %s, which the control plane needs to go on running (rule W4): take it out of spec.resources.", strings.Join(outOfReach, ", ")),
		}
	}
	out := b.loaded(rules)
	out.Message = strings.Join(append([]string{out.Message}, admission.PolicyWarnings(&policy.Spec)...), "; ")
	return out
}

// floorResources returns the resources that an object protects but that barriers never cover (rule W4).
func floorResources(object *sources.ObjectState) []string {
	var out []string
	for i := range object.Documents.Uncovered {
		out = append(out, admission.FloorResources(object.Documents.Uncovered[i].Set.Spec.Resources)...)
	}
	for i := range object.Documents.Permissions {
		d := &object.Documents.Permissions[i]
		if d.Fragment != "" {
			continue // Of the kinds that contain it, the others are not on the floor.
		}
		resource := webhooks.Resource(runtimeschema.GroupKind{Group: d.Group, Kind: d.Kind}, nil)
		if object.Bars() && admission.FloorResource(d.Group, resource) {
			out = append(out, resource+"."+d.Group)
		}
	}
	return out
}
