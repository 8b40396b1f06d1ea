package server

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/observation"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

// observations records observed updates, and keeps the webhook configuration and the status of observations. The keeper is nil without
// --uncovered-configuration: fieldperm then keeps no webhook configuration.
type observations struct {
	recorder *observation.Recorder
	objects  *sources.Objects
	keeper   *observation.Keeper
}

func newObservations(config *rest.Config, m *metrics.Metrics, known *schemas, b *barriers, authenticated bool) (*observations, error) {
	o := &observations{recorder: observation.NewRecorder(clock.RealClock{}, authenticated, m.ObservedRefusal)}
	o.objects = sources.NewObjects(known.client, known.defined, observation.Kinds(), func() {
		if o.keeper != nil {
			o.keeper.Changed()
		}
	})
	if b.keeper == nil {
		return o, nil
	}
	clients, err := kubernetes.NewForConfig(client(config, "observations"))
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	o.keeper = observation.NewKeeper(observation.Config{
		Client: clients, Dynamic: known.client, List: o.objects.List, Known: o.objects.Known, Reach: b.keeper.Reach, Recorder: o.recorder, Clock: clock.RealClock{},
		Tried: func() []v1alpha1.ResourceRule {
			documents := known.Documents()
			if documents == nil {
				return nil
			}
			return webhooks.Tried(known.Schema(), documents.Uncovered, uncovered.Plurals(documents.Topologies))
		},
	})
	known.compiled.add(o.keeper.Changed)
	return o, nil
}
