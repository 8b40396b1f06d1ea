package interlock

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission/configuration"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	v1 "k8s.io/client-go/informers/admissionregistration/v1"
	listers "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// source is where kube-apiserver's manager of webhook configurations gets them: with the events and the listings of a test, in its order. The embedded
// interfaces are nil.
type source struct {
	informers.SharedInformerFactory
	handler cache.ResourceEventHandler
	list    func() []*admissionregistrationv1.ValidatingWebhookConfiguration
}

type (
	group struct {
		admissionregistration.Interface
		*source
	}
	groupVersion struct {
		v1.Interface
		*source
	}
	informer struct {
		v1.TypedValidatingWebhookConfigurationInformer
		*source
	}
	events struct {
		cache.SharedIndexInformer
		*source
	}
	registration struct {
		cache.ResourceEventHandlerRegistration
	}
	lister struct {
		listers.ValidatingWebhookConfigurationLister
		*source
	}
)

func (s *source) Admissionregistration() admissionregistration.Interface { return group{source: s} }

func (g group) V1() v1.Interface { return groupVersion{source: g.source} }

func (v groupVersion) ValidatingWebhookConfigurations() v1.TypedValidatingWebhookConfigurationInformer {
	return informer{source: v.source}
}

func (i informer) Informer() cache.SharedIndexInformer { return events{source: i.source} }

func (i informer) Lister() listers.ValidatingWebhookConfigurationLister {
	return lister{source: i.source}
}

func (e events) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	e.handler = h
	return registration{}, nil
}

func (registration) HasSynced() bool { return true }

func (l lister) List(labels.Selector) ([]*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return l.list(), nil
}

// TestA5_TheStateIsInTheObjectThatItSpeaksOf: kube-apiserver may keep an earlier version of one object, and act on a later change of another. What it keeps
// has the state of that version, so that the proof sees it; and the next write of the object ends it.
func TestA5_TheStateIsInTheObjectThatItSpeaksOf(t *testing.T) {
	inState := func(c *admissionregistrationv1.ValidatingWebhookConfiguration) *admissionregistrationv1.ValidatingWebhookConfiguration {
		client, _ := webhooks.ClientConfigFor(&c.Webhooks[0].ClientConfig, webhooks.GranularPath, webhooks.ProbePath)
		out := webhooks.InState(c, client, webhooks.GranularProbed, webhooks.NewState(c))
		out.Generation++
		return out
	}
	loose := inState(granular(t))
	loose.Webhooks[0].Rules = loose.Webhooks[0].Rules[:1]
	right := inState(granular(t))
	right.Webhooks[0].Rules = granular(t).Webhooks[0].Rules
	other := func(generation int64) *admissionregistrationv1.ValidatingWebhookConfiguration {
		out := webhooks.UncoveredConfiguration(right.Webhooks[0].ClientConfig, nil)
		out.Generation = generation
		return out
	}
	s := &source{}
	manager := configuration.NewValidatingWebhookConfigurationManager(s, nil)
	use := func(c ...*admissionregistrationv1.ValidatingWebhookConfiguration) {
		s.list = func() []*admissionregistrationv1.ValidatingWebhookConfiguration { return slices.Clone(c) }
	}
	// acts checks what the manager has of the configuration.
	acts := func(when string, c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		t.Helper()
		for _, has := range manager.Webhooks() {
			w, ok := has.GetValidatingWebhook()
			switch {
			case !ok:
			case w.Name == webhooks.GranularWebhook && len(w.Rules) != len(c.Webhooks[0].Rules):
				t.Errorf("%s: has %d rules, want %d", when, len(w.Rules), len(c.Webhooks[0].Rules))
			case w.Name == webhooks.ProbeWebhook && !strings.HasSuffix(*w.ClientConfig.URL, webhooks.State(c)):
				t.Errorf("%s: calls %s, want the state %q", when, *w.ClientConfig.URL, webhooks.State(c))
			}
		}
	}

	// A request needs the webhooks while the configuration is loose. It is put right in that moment.
	s.list = func() []*admissionregistrationv1.ValidatingWebhookConfiguration {
		use(right, other(1))
		s.handler.OnUpdate(loose, right)
		return []*admissionregistrationv1.ValidatingWebhookConfiguration{loose, other(1)}
	}
	acts("while it is listed", loose)
	acts("after the event", loose)
	use(right, other(2))
	s.handler.OnUpdate(other(1), other(2))
	acts("another object has changed", loose)
	next := inState(right)
	use(next, other(2))
	s.handler.OnUpdate(right, next)
	acts("a new state", next)
}
