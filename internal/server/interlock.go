package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/util/filesystem"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/interlock"
)

// prove sets up the interlock: what it reads, which API servers it probes, and the events that make it probe again.
func (s *Server) prove(config *rest.Config) error {
	own := client(config, "interlock")
	clients, err := kubernetes.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	s.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	s.recorder = s.broadcaster.NewRecorder(scheme.Scheme, reporter)
	s.keys = interlock.NewKeyring(clock.RealClock{})
	s.canaries = interlock.NewCanaries(s.keys, clock.RealClock{})
	settings := interlock.Config{
		Prober: &interlock.Prober{Canaries: s.canaries, Observe: s.canarySent},
		Resources: func(group, resource string) (allowlist.Served, bool) {
			return s.resources.Allowlist().Served(group, resource)
		},
		Interval: s.options.InterlockInterval,
		Clock:    clock.RealClock{},
		Observe:  s.interlockChanged,
	}
	servers, err := s.apiServers(own, clients)
	if err != nil {
		return err
	}
	settings.Servers = s.counted(servers)
	s.servers = servers
	if s.webhookCAs, err = s.trusted(); err != nil {
		return err
	}
	settings.CA = s.webhookCAs
	if s.options.StaticManifests != "" {
		settings.Manifests = &interlock.Manifests{
			Directory: s.options.StaticManifests, AuthorizationConfig: s.options.KubeAPIServerAuthorizationConfig,
			Certificate: func() []byte { certificate, _ := s.serving.Cert.CurrentCertKeyContent(); return certificate },
			LongestTTL:  webhooks.LongestTTL(max(s.options.ReleaseDelay, webhooks.DefaultReleaseDelay)),
		}
	}
	name := s.options.WebhookConfiguration
	if name != "" {
		configurations := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		settings.Configuration = func(ctx context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			configuration, err := configurations.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return configuration, err
		}
		s.release = interlock.NewRelease(configurations, name, s.options.ReleaseDelay, clock.RealClock{})
	}
	s.interlock = interlock.New(settings)
	s.metrics.Proven(func() bool { return s.interlock.Status() == nil })
	if name != "" {
		return s.followConfiguration(clients, name)
	}
	return nil
}

// followManifests reports changes of the control plane's files to the interlock until the context ends.
func (s *Server) followManifests(ctx context.Context) {
	if s.options.StaticManifests == "" {
		return
	}
	log := klog.FromContext(ctx)
	var watches sync.WaitGroup
	for _, path := range []string{s.options.StaticManifests, s.options.KubeAPIServerAuthorizationConfig} {
		watches.Go(func() {
			filesystem.WatchUntil(ctx, manifestsPoll, path, s.interlock.FilesChanged, func(err error) {
				log.Error(err, "Watching a file of kube-apiserver's", "path", path)
			})
		})
	}
	watches.Wait()
}

// manifestsPoll is the period of polling the files. They are watched as well.
const manifestsPoll = time.Second

// counted reports to the metrics which API servers are proven.
func (s *Server) counted(servers interlock.Servers) interlock.Servers {
	return func() ([]interlock.Server, error) {
		known, err := servers()
		s.metrics.Servers(interlock.Addresses(known))
		return known, err
	}
}

// apiServers returns the API servers for which enforcement must be proven.
func (s *Server) apiServers(config *rest.Config, clients kubernetes.Interface) (interlock.Servers, error) {
	if s.options.APIServers == apiServersOwn {
		return interlock.Own(config)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(metav1.NamespaceDefault),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: "kubernetes"}).String()
		}))
	slices := factory.Discovery().V1().EndpointSlices()
	if _, err := slices.Informer().AddEventHandler(notify{func() { s.interlock.ServersChanged() }, s.probeAgain}); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	s.typed = append(s.typed, factory)
	return interlock.All(config, func() ([]*discoveryv1.EndpointSlice, error) {
		if !slices.Informer().HasSynced() {
			return nil, errors.New("are not listed yet: see that fieldperm may list and watch them, which rbac.yaml of fieldperm-gen manifests grants")
		}
		return slices.Lister().List(labels.Everything())
	}), nil
}

// followConfiguration reports every state of the webhook configuration to the interlock and to the release.
func (s *Server) followConfiguration(clients kubernetes.Interface, name string) error {
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}))
	changed := func(object any) {
		configuration, _ := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
		s.interlock.ConfigurationChanged(configuration)
		s.release.Changed(configuration)
	}
	_, err := factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(any) { changed(nil) },
	})
	if err != nil {
		return fmt.Errorf("informer: %w", err)
	}
	s.typed = append(s.typed, factory)
	return nil
}

func (s *Server) canarySent(server string, result interlock.Result, took time.Duration) {
	s.metrics.Canary(server, string(result), took)
	s.metrics.ResourceProofs(s.interlock.Proven())
}

// interlockChanged reports in log, metrics and an Event why fieldperm denies granular users, or that it allows them again.
func (s *Server) interlockChanged(reason interlock.Reason, err error) {
	switch {
	case err == nil:
		klog.Background().Info("The interlock is closed: enforcement is proven on every kube-apiserver")
		s.metrics.Interlock(true, "")
		s.event(corev1.EventTypeNormal, "InterlockClosed", "proven", "Enforcement is proven on every kube-apiserver: holders of granular are let through.")
	case reason == interlock.ReasonStopping:
		klog.Background().Info("The interlock is open: fieldperm is shutting down")
		s.metrics.Interlock(false, string(reason))
	case reason == interlock.ReasonResource:
		klog.Background().Error(err, "A resource is not enforced and stays closed to holders of granular")
		s.event(corev1.EventTypeWarning, "ResourceNotEnforced", string(reason), err.Error())
	default:
		klog.Background().Error(err, "The interlock is open: nobody is let through by granular", "reason", reason)
		s.metrics.Interlock(false, string(reason))
		s.event(corev1.EventTypeWarning, "InterlockOpened", string(reason), err.Error())
	}
}

// event sends an Event about the webhook configuration. It never blocks. The recorder merges Events that differ only in the note
// into the first one, so the cause is in the action.
func (s *Server) event(kind, reason, cause, note string) {
	name := s.options.WebhookConfiguration
	if name == "" {
		name = staticConfiguration
	}
	const noteBytes = 1024 // The maximum length of an Event's note.
	if len(note) > noteBytes {
		note = note[:noteBytes-1] + "…"
	}
	s.recorder.Eventf(&corev1.ObjectReference{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: name,
	}, nil, kind, reason, cause, "%s", note)
}

// reporter is the controller name in Events.
const reporter = "fieldperm.dev/webhook"

// staticConfiguration is the name of the manifest that fieldperm-gen manifests writes.
const staticConfiguration = "fieldperm.static.k8s.io"
