package server

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/probe"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/status"
	"github.com/fieldperm/fieldperm/internal/uncovered"
	"github.com/fieldperm/fieldperm/schema"
)

// keepBarriers sets up the keeper of --uncovered-configuration. It does nothing if the flag is not set.
func (s *Server) keepBarriers(config *rest.Config) error {
	if s.options.UncoveredConfiguration == "" {
		return nil
	}
	clients, err := kubernetes.NewForConfig(client(config, "uncovered"))
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	documents := func() schema.Documents {
		if d := s.schemas.Documents(); d != nil {
			return *d
		}
		return schema.Documents{}
	}
	keep := uncovered.Config{
		Client: clients, Name: s.options.UncoveredConfiguration, Owner: s.options.WebhookConfiguration, Version: builtVersion(),
		Ready:   s.schemas.Ready,
		Schema:  s.schemas.Schema,
		Sets:    func() []schema.UncoveredDocument { return documents().Uncovered },
		Plurals: func() map[runtimeschema.GroupKind]string { return uncovered.Plurals(documents().Topologies) },
		Unknown: s.schemas.Unknown,
		Applied: s.metrics.UncoveredApplied,
		Observed: func() {
			s.status.Changed()
			s.probeAgain()
		},
	}
	if s.options.WebhookURL != "" {
		keep.Reach = s.reach
	}
	s.barriers = uncovered.New(keep)
	s.probes = probe.New(probe.Config{
		Prober: &interlock.Prober{Canaries: s.canaries}, Servers: s.servers, Served: s.resources.Allowlist, Objects: s.written,
		Barriers: s.barriersInForce, Version: s.barriers.Version, Unasked: s.barriers.Unasked, Changed: s.status.Changed, Clock: clock.RealClock{},
	})
	return nil
}

// reach returns the client configuration with which kube-apiservers call a path of --webhook-url.
func (s *Server) reach(path string) (admissionregistrationv1.WebhookClientConfig, error) {
	bundle := s.webhookCAs()
	if len(bundle) == 0 {
		return admissionregistrationv1.WebhookClientConfig{}, errors.New("--webhook-url: the CAs that signed fieldperm's certificate are not known yet")
	}
	return webhooks.ClientConfigAt(s.options.WebhookURL, path, bundle), nil
}

// builtVersion returns the version of the image, or the version of the module with its commit. It returns "" if neither was
// recorded.
func builtVersion() string {
	const unknown = "v0.0.0-"
	if stamped := version.Get().GitVersion; !strings.HasPrefix(stamped, unknown) {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return ""
}

// compiled is called after every compile of the schemas. The first call comes before any other set-up.
func (s *Server) compiled(kinds, failed, faults int, at time.Time, took time.Duration) {
	s.metrics.Compiled(kinds, failed, faults, at, took)
	s.status.Changed()
	if s.barriers != nil {
		s.barriers.Changed()
	}
	s.probeAgain()
}

// barrierEnforced reports whether the barriers of an object are in force: whether kube-apiserver refuses the writes that they
// forbid.
func (s *Server) barrierEnforced(object *sources.ObjectState) status.Enforcement {
	if s.barriers == nil {
		return status.Enforcement{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotKept,
			Message: "This fieldperm keeps no webhook configuration for barriers: start it with --uncovered-configuration.",
		}
	}
	if newer := s.barriers.Newer(); newer != "" {
		return status.Enforcement{Reason: v1alpha1.ReasonNewerVersion, Message: fmt.Sprintf("The webhook for barriers was written by fieldperm %s, which is newer than this one and does not run: finish the upgrade.", newer)}
	}
	if outOfReach := floorResources(object); len(outOfReach) > 0 {
		return status.Enforcement{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOutOfReach,
			Message: fmt.Sprintf("No barrier reaches %s, which the control plane needs to go on running (rule W4): take it out of spec.resources.", strings.Join(outOfReach, ", ")),
		}
	}
	if applied, why := s.applied(object); !applied {
		return status.Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotApplied, Message: why}
	}
	out := s.refused(object)
	for i := range object.Documents.Uncovered {
		for _, warning := range admission.SetWarnings(s.schemas.Schema(), &object.Documents.Uncovered[i]) {
			out.Message += "; " + warning
		}
	}
	return out
}

// applied reports whether the webhook configuration has the rules for an object. If not, it returns the reason.
func (s *Server) applied(object *sources.ObjectState) (bool, string) {
	for i := range object.Documents.Permissions {
		d := &object.Documents.Permissions[i]
		if applied, why := s.barriers.EnforcedKind(runtimeschema.GroupKind{Group: d.Group, Kind: d.Kind}); !applied {
			return false, why
		}
	}
	for i := range object.Documents.Uncovered {
		if applied, why := s.barriers.EnforcedSet(&object.Documents.Uncovered[i].Set.Spec); !applied {
			return false, why
		}
	}
	return true, ""
}

// floorResources returns the resources that an object protects but that barriers never cover (rule W4).
func floorResources(object *sources.ObjectState) []string {
	var out []string
	for i := range object.Documents.Uncovered {
		out = append(out, admission.FloorResources(&object.Documents.Uncovered[i].Set.Spec)...)
	}
	for i := range object.Documents.Permissions {
		d := &object.Documents.Permissions[i]
		resource := webhooks.Resource(runtimeschema.GroupKind{Group: d.Group, Kind: d.Kind}, nil)
		if object.Bars() && admission.FloorResource(d.Group, resource) {
			out = append(out, resource+"."+d.Group)
		}
	}
	return out
}
