package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// schemas has the state that watches keep current: the permission schema and the allowlist.
type schemas struct {
	*sources.Live
	client dynamic.Interface
	// defined returns the CustomResourceDefinitions from an informer.
	defined   func() ([]*sources.Definition, error)
	informers dynamicinformer.DynamicSharedInformerFactory
	objects   *sources.Objects
	resources *allowlist.Watcher
	// compiled is sent after every compile of the schemas and of the policies.
	compiled signal
	policies *policies.Live
	// lastDigest is that of the objects of the last compile, "" if it is not computed.
	digested   sync.Mutex
	lastDigest string
	// policyObjects follows the policies.
	policyObjects *sources.Objects
}

func newSchemas(ctx context.Context, o *Options, config *rest.Config, m *metrics.Metrics) (*schemas, error) {
	objects, err := dynamic.NewForConfig(client(config, "sources"))
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(client(config, "discovery"))
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	s := &schemas{client: objects, informers: dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)}
	definitions := s.informers.ForResource(sources.CustomResourceDefinitions())
	services := s.informers.ForResource(allowlist.APIServices())
	if err := definitions.Informer().SetTransform(sources.TransformDefinition); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	listServices := func(ctx context.Context) (allowlist.Services, error) { return allowlist.ListServices(ctx, objects) }
	listed := func() ([]*sources.Definition, error) { return definitionsIn(definitions.Informer().GetStore()) }
	s.defined = listed
	s.objects = sources.NewObjects(objects, listed, sources.Documents(), func() { s.Changed() })
	s.policyObjects = sources.NewObjects(objects, listed, map[string]string{v1alpha1.ConditionalPolicyResource: v1alpha1.ConditionalPolicyKind}, func() { s.policies.Changed() })
	s.policies = policies.New(policies.Config{
		List:     s.policyObjects.List,
		Synced:   definitions.Informer().HasSynced,
		Types:    func() policies.Types { return policies.Defined(listed, policies.Published(disco)) },
		Compiled: s.compiled.send,
	})
	s.Live, err = sources.New(ctx, sources.Config{
		Files:       o.PermissionSchemas,
		OpenAPI:     openapi.NewClientWithContext(disco.RESTClient()),
		Services:    listServices,
		Definitions: listed,
		Objects:     s.objects.List,
		Synced:      definitions.Informer().HasSynced,
		Compiled: func(kinds, failed, faults int, at time.Time, took time.Duration) {
			m.Compiled(kinds, failed, faults, at, took)
			s.compiled.send()
			// The published types may have changed.
			s.policies.TypesChanged()
		},
		LoadFailed: m.LoadFailed,
	})
	if err != nil {
		return nil, err
	}
	s.resources = allowlist.NewWatcher(disco, listServices, o.AggregatedGroups)
	changed := &signal{listeners: []func(){s.Changed, s.resources.Changed, s.policies.TypesChanged}}
	for _, informer := range []cache.SharedIndexInformer{definitions.Informer(), services.Informer()} {
		if _, err := informer.AddEventHandler(changed); err != nil {
			return nil, fmt.Errorf("informer: %w", err)
		}
	}
	return s, nil
}

// Run reads and compiles the schemas until the context ends.
func (s *schemas) Run(ctx context.Context) {
	// The first read needs the list of definitions. The informer logs any error of the list.
	s.informers.WaitForCacheSync(ctx.Done())
	s.Live.Run(ctx)
}

// conditional returns the conditions of policies on a write.
func (s *schemas) conditional(write *admission.Write, then fieldperm.Authorizer) (admission.Conditions, error) {
	set, err := s.policies.Set()
	if err != nil {
		return nil, err
	}
	return set.Conditional(write, then)
}

// known returns the objects that permissions are compiled from, and the policies.
func (s *schemas) known() []*unstructured.Unstructured {
	return append(s.objects.Known(), s.policyObjects.Known()...)
}

// states returns the states of these objects.
func (s *schemas) states() []sources.ObjectState {
	return slices.Concat(s.Objects(), s.policies.Objects())
}

// digest returns the generations of these objects, as one text of bounded length.
func (s *schemas) digest() string {
	s.digested.Lock()
	defer s.digested.Unlock()
	if s.lastDigest == "" {
		states := s.states()
		lines := make([]string, 0, len(states))
		for i := range states {
			lines = append(lines, fmt.Sprintf("%s %d", states[i].UID, states[i].Generation))
		}
		slices.Sort(lines)
		s.lastDigest = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
	}
	return s.lastDigest
}

// forgetDigest is called after every compile.
func (s *schemas) forgetDigest() {
	s.digested.Lock()
	defer s.digested.Unlock()
	s.lastDigest = ""
}

// denied returns the webhook rules for the policies that deny.
func (s *schemas) denied() []webhooks.Rule {
	var out []webhooks.Rule
	for _, p := range s.policies.Denies() {
		out = append(out, webhooks.Denied(&p.Spec)...)
	}
	return out
}

// denies returns the policy in force of an object if it denies, nil if it does not.
func (s *schemas) denies(object *sources.ObjectState) *v1alpha1.ConditionalPolicy {
	for _, p := range s.policies.Denies() {
		if p.Name == object.Name {
			return p
		}
	}
	return nil
}

// allowed reports whether a resource is in the allowlist.
func (s *schemas) allowed(group, resource, subresource string) bool {
	return s.resources.Allowlist().Has(group, resource, subresource)
}

func definitionsIn(store cache.Store) ([]*sources.Definition, error) {
	objects := store.List()
	out := make([]*sources.Definition, 0, len(objects))
	for _, object := range objects {
		d, ok := object.(*sources.Definition)
		if !ok {
			return nil, fmt.Errorf("informer holds a %T", object)
		}
		out = append(out, d)
	}
	return out, nil
}
