package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/util/filesystem"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

// enforcement proves that kube-apiservers ask fieldperm about every write that /authorize allows: its sources, which
// API servers it probes, and the release of the webhook configuration.
type enforcement struct {
	options   *Options
	metrics   *metrics.Metrics
	keys      *interlock.Keyring
	tokens    *interlock.ProbeTokens
	interlock *interlock.Interlock
	servers   interlock.Servers
	release   *interlock.Release // nil without --webhook-configuration
	// ready reports whether the proof can start.
	ready     func() bool
	informers []informers.SharedInformerFactory
	// serversChanged is sent when the API servers to probe may have changed.
	serversChanged signal
	// loaded reports whether every kube-apiserver has loaded the rules of all barriers. It is set before Run.
	loaded      func() bool
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
}

func newEnforcement(o *Options, config *rest.Config, m *metrics.Metrics, known *schemas, certs *servingCertificates) (*enforcement, error) {
	own := client(config, "proof")
	clients, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	e := &enforcement{options: o, metrics: m, keys: interlock.NewKeyring(clock.RealClock{}), loaded: func() bool { return false }}
	// Before discovery is known, /authorize lets no probe through. Before there are schemas, /admit cannot decide the requests that
	// /authorize lets through.
	e.ready = func() bool { return known.resources.Ready() == nil && known.Ready() == nil }
	e.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	e.recorder = e.broadcaster.NewRecorder(scheme.Scheme, reporter)
	e.tokens = interlock.NewProbeTokens(e.keys, clock.RealClock{})
	settings := interlock.Config{
		Prober: &interlock.Prober{Tokens: e.tokens, Observe: e.probeSent},
		Resources: func(group, resource string) (allowlist.Served, bool) {
			return known.resources.Allowlist().Served(group, resource)
		},
		CA:       certs.trusted,
		Interval: o.ProofInterval,
		Clock:    clock.RealClock{},
		Observe:  e.changed,
	}
	if e.servers, err = e.apiServers(own, clients); err != nil {
		return nil, err
	}
	settings.Servers = e.counted(e.servers)
	if o.StaticManifests != "" {
		settings.Manifests = &interlock.Manifests{
			Directory: o.StaticManifests, AuthorizationConfig: o.KubeAPIServerAuthorizationConfig,
			Certificate: certs.current,
			LongestTTL:  webhooks.LongestTTL(max(o.ReleaseDelay, webhooks.DefaultReleaseDelay)),
		}
	}
	name := o.WebhookConfiguration
	if name != "" {
		configurations := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		settings.Configuration = func(ctx context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			configuration, err := configurations.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return configuration, err
		}
		settings.Write = func(ctx context.Context, next *admissionregistrationv1.ValidatingWebhookConfiguration) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			return configurations.Update(ctx, next, metav1.UpdateOptions{FieldManager: uncovered.FieldManager})
		}
		e.release = interlock.NewRelease(configurations, name, o.ReleaseDelay, clock.RealClock{})
	}
	e.interlock = interlock.New(settings)
	e.serversChanged.add(e.interlock.ServersChanged)
	m.Proven(func() bool { return e.interlock.Status() == nil })
	if name == "" {
		return e, nil
	}
	return e, e.followConfiguration(clients, name)
}

// Run proves enforcement until the context ends.
func (e *enforcement) Run(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { e.followManifests(ctx) })
	e.interlock.Run(ctx)
	following.Wait()
}

// status says in one line whether enforcement is proven.
func (e *enforcement) status() string {
	if err := e.interlock.Status(); err != nil {
		return err.Error()
	}
	out := admission.ProvenReason + strconv.Itoa(e.interlock.Servers())
	if e.loaded() {
		out += admission.LoadedReason
	}
	return out
}

// followManifests reports changes of the control plane's files until the context ends.
func (e *enforcement) followManifests(ctx context.Context) {
	if e.options.StaticManifests == "" {
		return
	}
	log := klog.FromContext(ctx)
	var watches sync.WaitGroup
	for _, path := range []string{e.options.StaticManifests, e.options.KubeAPIServerAuthorizationConfig} {
		watches.Go(func() {
			filesystem.WatchUntil(ctx, manifestsPoll, path, e.interlock.FilesChanged, func(err error) {
				log.Error(err, "Watching a file of kube-apiserver's", "path", path)
			})
		})
	}
	watches.Wait()
}

// manifestsPoll is the period of polling the files. They are watched as well.
const manifestsPoll = time.Second

// counted reports to the metrics which API servers are proven.
func (e *enforcement) counted(servers interlock.Servers) interlock.Servers {
	return func() ([]interlock.Server, error) {
		known, err := servers()
		e.metrics.Servers(interlock.Addresses(known))
		return known, err
	}
}

// apiServers returns the API servers for which enforcement must be proven.
func (e *enforcement) apiServers(config *rest.Config, clients kubernetes.Interface) (interlock.Servers, error) {
	switch e.options.APIServers {
	case apiServersOwn:
		return interlock.Own(config)
	case apiServersAll:
	default:
		return interlock.Listed(config, strings.Split(e.options.APIServers, ",")), nil
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(metav1.NamespaceDefault),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, webhooks.APIServersSlice).String()
		}))
	slices := factory.Discovery().V1().EndpointSlices()
	if _, err := slices.Informer().AddEventHandler(&e.serversChanged); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	e.informers = append(e.informers, factory)
	return interlock.All(config, func() (*discoveryv1.EndpointSlice, error) {
		if !slices.Informer().HasSynced() {
			return nil, errors.New("is not read yet: see that fieldperm may list and watch it, which rbac.yaml of fieldperm-gen manifests grants")
		}
		slice, err := slices.Lister().EndpointSlices(metav1.NamespaceDefault).Get(webhooks.APIServersSlice)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return slice, err
	}), nil
}

// followConfiguration reports every state of the webhook configuration to the interlock and to the release.
func (e *enforcement) followConfiguration(clients kubernetes.Interface, name string) error {
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}))
	changed := func(object any) {
		configuration, _ := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
		e.interlock.ConfigurationChanged(configuration)
		e.release.Changed(configuration)
	}
	_, err := factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(any) { changed(nil) },
	})
	if err != nil {
		return fmt.Errorf("informer: %w", err)
	}
	e.informers = append(e.informers, factory)
	return nil
}

func (e *enforcement) probeSent(server string, result interlock.Result, took time.Duration) {
	e.metrics.Probe(server, string(result), took)
	e.metrics.ResourceProofs(e.interlock.Proven())
}

// changed reports in log, metrics and an Event why fieldperm denies granular users, or that it allows them again.
func (e *enforcement) changed(reason interlock.Reason, err error) {
	switch {
	case err == nil:
		klog.Background().Info("Enforcement is proven on every kube-apiserver")
		e.metrics.Enforcement(true, "")
		e.event(corev1.EventTypeNormal, "EnforcementProven", "proven", "Enforcement is proven on every kube-apiserver: holders of granular are let through.")
	case reason == interlock.ReasonStopping:
		klog.Background().Info("Enforcement is not proven any more: fieldperm is shutting down")
		e.metrics.Enforcement(false, string(reason))
	case reason == interlock.ReasonResource:
		klog.Background().Error(err, "A resource is not enforced: granular users are refused there")
		e.event(corev1.EventTypeWarning, "ResourceNotEnforced", string(reason), err.Error())
	default:
		klog.Background().Error(err, "Enforcement is not proven: granular users are refused", "reason", reason)
		e.metrics.Enforcement(false, string(reason))
		e.event(corev1.EventTypeWarning, "EnforcementNotProven", string(reason), err.Error())
	}
}

// event sends an Event about the webhook configuration. It never blocks. The recorder merges Events that differ only in the note
// into the first one, so the cause is in the action.
func (e *enforcement) event(kind, reason, cause, note string) {
	name := e.options.WebhookConfiguration
	if name == "" {
		name = staticConfiguration
	}
	const noteBytes = 1024 // The API server limits an Event's note to this length.
	e.recorder.Eventf(&corev1.ObjectReference{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: name,
	}, nil, kind, reason, cause, "%s", shorten.Within(note, noteBytes))
}

// reporter is the controller name in Events.
const reporter = "fieldperm.dev/webhook"

// staticConfiguration is the name of the manifest that fieldperm-gen manifests writes.
const staticConfiguration = "fieldperm.static.k8s.io"
