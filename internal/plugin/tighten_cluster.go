package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// knownCluster is what tighten reads of a cluster, or of files in place of it.
type knownCluster struct {
	objects      rbac.Grants
	observations []v1alpha1.PermissionObservation
	decides      func(r tighten.Resource) tighten.Decides
	// undecided are those on which fieldperm does not decide.
	undecided []tighten.Resource
	barriers  *tighten.Barriers
	policies  []v1alpha1.ConditionalPolicy

	// The clients are nil without a cluster.
	config   *rest.Config
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
	observed dynamic.ResourceInterface
	// served are the resource lists of discovery.
	served []*metav1.APIResourceList
	schema *schema.Schema
}

// knownCluster reads the RBAC objects, the observations, and which resources there are.
func (o *tightening) knownCluster(ctx context.Context) (*knownCluster, error) {
	if o.offline() {
		return o.offlineObjects(ctx)
	}
	known, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := known.readObjects(ctx); err != nil {
		return nil, fmt.Errorf("%w: the user of the command must be allowed to list Roles, ClusterRoles and their bindings", err)
	}
	if err := known.readObservations(ctx); err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("PermissionObservations: %w", err)
		}
		if len(o.auditLogs) == 0 {
			return nil, fmt.Errorf("PermissionObservations: the cluster does not have the kind: install the CustomResourceDefinitions of fieldperm, or give --audit-log: %w", err)
		}
	}
	if err := o.discover(ctx, known); err != nil {
		return nil, err
	}
	if known.policies, err = policies.All(ctx, known.config, o.policyFiles); err != nil {
		return nil, err
	}
	return known, o.readBarriers(ctx, known)
}

// connect returns the clients.
func (o *tightening) connect(ctx context.Context) (*knownCluster, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	if err := reachable(ctx, config, o.withoutCluster()); err != nil {
		return nil, err
	}
	known := &knownCluster{config: config}
	if known.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if known.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if known.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	known.observed = known.dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.PermissionObservationResource))
	return known, nil
}

// readObjects lists the RBAC objects.
func (k *knownCluster) readObjects(ctx context.Context) error {
	objects, err := rbac.List(ctx, k.client)
	if err != nil {
		return err
	}
	k.objects = *objects
	return nil
}

func (k *knownCluster) readObservations(ctx context.Context) error {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return k.observed.List(ctx, options)
	}
	return pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("item is %T", item)
		}
		var out v1alpha1.PermissionObservation
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &out); err != nil {
			return err
		}
		k.observations = append(k.observations, out)
		return nil
	})
}

// discover finds out on which resources fieldperm decides. If a group cannot be read, update and patch on it stay.
func (o *tightening) discover(ctx context.Context, known *knownCluster) error {
	client, err := discovery.NewDiscoveryClientForConfig(known.config)
	if err != nil {
		return err
	}
	groups, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
	unread := map[string]bool{}
	var unknown []string
	if failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok {
		for gv, cause := range failed {
			o.warn("group %q cannot be discovered, so update and patch on it stay: %v", gv.Group, cause)
			unread[gv.Group] = true
			unknown = append(unknown, gv.Group)
		}
	} else if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	services, err := allowlist.ListServices(ctx, known.dynamic)
	if err != nil {
		return fmt.Errorf("%w: the user of the command must be allowed to list APIServices", err)
	}
	var aggregated []string
	for _, gv := range services.Aggregated {
		aggregated = append(aggregated, gv.Group)
		unread[gv.Group] = true
	}
	known.served = lists
	allowed := allowlist.Build(lists, aggregated, nil)
	names := map[tighten.Resource]bool{}
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			names[tighten.Resource{Group: gv.Group, Name: list.APIResources[i].Name}] = true
		}
	}
	for _, group := range groups {
		if !slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool { return groupOf(l) == group.Name }) {
			unread[group.Name] = true
			unknown = append(unknown, group.Name)
		}
	}
	known.decides = func(r tighten.Resource) tighten.Decides {
		name, subresource, _ := strings.Cut(r.Name, "/")
		switch {
		case allowed.Has(r.Group, name, subresource):
			return tighten.DecidesYes
		case !unread[r.Group] && !names[tighten.Resource{Group: r.Group, Name: name}]:
			return tighten.DecidesUnserved
		}
		return tighten.DecidesNot
	}
	known.undecided = undecided(lists, unknown, known.decides)
	return nil
}

func groupOf(l *metav1.APIResourceList) string {
	gv, err := runtimeschema.ParseGroupVersion(l.GroupVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// decidesOffline is for a cluster that is not known: it may serve every resource itself.
func decidesOffline(r tighten.Resource) tighten.Decides {
	name, subresource, _ := strings.Cut(r.Name, "/")
	if endpoint.TakesMarker(r.Group, name, subresource) {
		return tighten.DecidesYes
	}
	return tighten.DecidesNot
}
