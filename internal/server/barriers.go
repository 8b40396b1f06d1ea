package server

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/status"
	"github.com/fieldperm/fieldperm/internal/uncovered"
	"github.com/fieldperm/fieldperm/schema"
)

// keepBarriers sets up the keeper of --uncovered-configuration, if there is one.
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
	s.barriers = uncovered.New(uncovered.Config{
		Client: clients, Name: s.options.UncoveredConfiguration, Owner: s.options.WebhookConfiguration,
		Ready:    s.schemas.Ready,
		Schema:   s.schemas.Schema,
		Sets:     func() []schema.UncoveredDocument { return documents().Uncovered },
		Plurals:  func() map[runtimeschema.GroupKind]string { return uncovered.Plurals(documents().Topologies) },
		Unknown:  s.schemas.Unknown,
		Applied:  s.metrics.UncoveredApplied,
		Observed: s.status.Changed,
	})
	return nil
}

// compiled is told of every compile, the first of them before anything else is set up.
func (s *Server) compiled(kinds, failed, faults int, at time.Time, took time.Duration) {
	s.metrics.Compiled(kinds, failed, faults, at, took)
	s.status.Changed()
	if s.barriers != nil {
		s.barriers.Changed()
	}
}

// barrierEnforced says whether API servers ask about what an object guards.
func (s *Server) barrierEnforced(object *sources.ObjectState) status.Enforcement {
	if s.barriers == nil {
		return status.Enforcement{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonStaticManifest,
			Message: "The webhook for barriers is a static manifest, which cannot be read: write it anew with fieldperm-gen manifests.",
		}
	}
	enforced, why := true, ""
	check := func(answer bool, reason string) {
		if enforced {
			enforced, why = answer, reason
		}
	}
	for i := range object.Documents.Permissions {
		d := &object.Documents.Permissions[i]
		check(s.barriers.EnforcedKind(runtimeschema.GroupKind{Group: d.Group, Kind: d.Kind}))
	}
	for i := range object.Documents.Uncovered {
		check(s.barriers.EnforcedSet(&object.Documents.Uncovered[i].Set.Spec))
	}
	if !enforced {
		return status.Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotApplied, Message: why}
	}
	return status.Enforcement{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnforced, Message: why}
}
