package server

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fieldperm/fieldperm/internal/discovery"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/probe"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/status"
	"github.com/fieldperm/fieldperm/internal/tracing"
)

// Complete checks the options, compiles the schema files and opens the port. It starts nothing else. The error names the flag, or
// the file and the position in it.
func (o *Options) Complete(ctx context.Context) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w: give a kubeconfig, or run in a cluster", err)
	}
	s := &Server{
		options: *o,
		metrics: metrics.New(),
		written: probe.NewObjects(),
	}
	if s.tracer, err = tracing.Provider(ctx, o.TracingConfigFile); err != nil {
		return nil, err
	}
	if err := s.follow(ctx, config); err != nil {
		return nil, err
	}
	if err := s.prove(config); err != nil {
		return nil, err
	}
	if err := s.keepBarriers(config); err != nil {
		return nil, err
	}
	if err := s.decide(ctx, config); err != nil {
		return nil, err
	}
	return s, s.listen(config)
}

// client returns a client configuration with its own user agent for part. It has no client-side rate limit: the API server's
// priority and fairness limits the requests. Its informers list again after each watch: see relist.
func client(config *rest.Config, part string) *rest.Config {
	out := rest.AddUserAgent(rest.CopyConfig(config), "fieldperm-webhook/"+part)
	out.QPS, out.Burst, out.RateLimiter = -1, 0, nil
	out.Wrap(newRelist)
	return out
}

// follow sets up the components that stay current by watches: the permission schema and the allowlist.
func (s *Server) follow(ctx context.Context, config *rest.Config) error {
	objects, err := dynamic.NewForConfig(client(config, "sources"))
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	disco, err := clientdiscovery.NewDiscoveryClientForConfig(client(config, "discovery"))
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	s.informers = dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	definitions := s.informers.ForResource(sources.CustomResourceDefinitions())
	services := s.informers.ForResource(discovery.APIServices())
	if err := definitions.Informer().SetTransform(slim); err != nil {
		return fmt.Errorf("informer: %w", err)
	}
	listServices := func(ctx context.Context) (discovery.Services, error) { return discovery.ListServices(ctx, objects) }
	listed := func() ([]*unstructured.Unstructured, error) { return unstructuredList(definitions.Lister()) }
	s.objects = sources.NewObjects(objects, listed, func() { s.schemas.Changed() })
	s.status = status.New(status.Config{
		Client: objects, Known: s.objects.Known, Enforced: s.barrierEnforced,
		States: func() []sources.ObjectState { return s.schemas.Objects() },
	})
	s.schemas, err = sources.New(ctx, sources.Config{
		Files:       s.options.PermissionSchemas,
		OpenAPI:     openapi.NewClientWithContext(disco.RESTClient()),
		Services:    listServices,
		Definitions: listed,
		Objects:     s.objects.List,
		Synced:      definitions.Informer().HasSynced,
		Compiled:    s.compiled,
		LoadFailed:  s.metrics.LoadFailed,
	})
	if err != nil {
		return err
	}
	s.resources = discovery.NewWatcher(disco, listServices, s.options.AggregatedGroups)
	for _, informer := range []cache.SharedIndexInformer{definitions.Informer(), services.Informer()} {
		if _, err := informer.AddEventHandler(notify{s.schemas.Changed, s.resources.Changed}); err != nil {
			return fmt.Errorf("informer: %w", err)
		}
	}
	return nil
}

func unstructuredList(lister cache.GenericLister) ([]*unstructured.Unstructured, error) {
	objects, err := lister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("informer holds a %T", object)
		}
		out = append(out, u)
	}
	return out, nil
}

// notify is an event handler that reports only that something changed.
type notify []func()

func (n notify) OnAdd(any, bool)   { n.all() }
func (n notify) OnUpdate(any, any) { n.all() }
func (n notify) OnDelete(any)      { n.all() }

func (n notify) all() {
	for _, f := range n {
		f()
	}
}
