package server

import (
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/probe"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/status"
	"github.com/fieldperm/fieldperm/internal/uncovered"
	"github.com/fieldperm/fieldperm/internal/version"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// barriers keeps the webhook configuration for barriers, probes whether kube-apiservers enforce them, and reports that in the status of
// objects. The keeper and the probes are nil without --uncovered-configuration.
type barriers struct {
	options *Options
	schemas *schemas
	trusted func() []byte
	status  *status.Writer
	keeper  *uncovered.Keeper
	probes  *probe.Probes
	// written are the objects about which the webhooks received requests.
	written *probe.Objects
	guarded guarded
}

func newBarriers(o *Options, config *rest.Config, m *metrics.Metrics, known *schemas, certs *servingCertificates, e *enforcement) (*barriers, error) {
	b := &barriers{options: o, schemas: known, trusted: certs.trusted, written: probe.NewObjects()}
	b.status = status.New(status.Config{Client: known.client, Known: known.known, Enforced: b.enforced, States: known.states})
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
	// The endpoints that must be probed may change with the configuration, the schemas and the API servers.
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
	b.probes = probe.New(probe.Config{
		Prober: &interlock.Prober{Tokens: e.tokens}, Servers: e.servers, Served: known.resources.Allowlist, Objects: b.written,
		Barriers: b.inForce, Version: b.keeper.Version, Unasked: b.keeper.Unasked, Changed: b.status.Changed, Clock: clock.RealClock{},
	})
	observed.add(b.status.Changed)
	observed.add(b.probes.Changed)
	known.compiled.add(b.keeper.Changed)
	known.compiled.add(b.probes.Changed)
	e.serversChanged.add(b.probes.Changed)
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
	if applied, why := b.applied(object); !applied {
		return status.Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotApplied, Message: why}
	}
	out := b.refused(b.of(object))
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

// applied reports whether the webhook configuration has the rules for an object. If not, it returns the reason.
func (b *barriers) applied(object *sources.ObjectState) (bool, string) {
	for i := range object.Documents.Permissions {
		for _, kind := range object.Documents.Permissions[i].KindsIn(b.schemas.Schema()) {
			if applied, why := b.keeper.EnforcedKind(kind); !applied {
				return false, why
			}
		}
	}
	for i := range object.Documents.Uncovered {
		if applied, why := b.keeper.EnforcedSet(&object.Documents.Uncovered[i].Set.Spec); !applied {
			return false, why
		}
	}
	return true, ""
}

// enforcedPolicy returns the state of a policy that denies, with its rules.
func (b *barriers) enforcedPolicy(policy *v1alpha1.ConditionalPolicy, rules []webhooks.Rule) status.Enforcement {
	if outOfReach := admission.FloorResources(admission.PolicyResources(&policy.Spec)); len(outOfReach) > 0 {
		return status.Enforcement{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOutOfReach,
			Message: fmt.Sprintf("No Deny reaches %s, which the control plane needs to go on running (rule W4): take it out of spec.resources.", strings.Join(outOfReach, ", ")),
		}
	}
	if applied, why := b.keeper.Enforced(rules); !applied {
		return status.Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotApplied, Message: why}
	}
	out := status.Enforcement{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnforced, Message: "the rules are in the webhook configuration; what it denies stores nothing and takes no probe"}
	if barriers := b.ofPolicy(policy, rules); len(barriers) > 0 {
		out = b.refused(barriers)
	}
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
