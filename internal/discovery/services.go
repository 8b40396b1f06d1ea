package discovery

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

const (
	// AutoManaged is the label with which kube-aggregator (pkg/controllers/autoregister) marks the APIServices that a server makes.
	// It is "true" for those of definitions.
	AutoManaged = "kube-aggregator.kubernetes.io/automanaged"
	// AutoManagedOnStart is its value for the groups compiled into the server.
	AutoManagedOnStart = "onstart"
)

// Services tells who serves the groups of an API server, by its APIServices.
//
// Which server a version leads to is what an APIService is for: the API server itself goes by it. Which groups are compiled
// in is only a label there, which users may write and the API server does not put back. So the label counts for groups of
// Kubernetes alone; in any other group it might be what takes the barriers of a definition away.
type Services struct {
	// Aggregated are the versions that another server serves.
	Aggregated []runtimeschema.GroupVersion
	// Own are the groups of Kubernetes that are compiled into the API server. It asks no definition for any version of them.
	Own []string
	// Claimed are the groups that are labelled as compiled in and are not known to be Kubernetes', by the name of an
	// APIService that says so. They may be those of a newer API server.
	Claimed map[string]string
	// Defined are the versions that the API server registered for definitions, served or not.
	Defined []runtimeschema.GroupVersion
}

// unserved reports whether a version is listed only, or may be: the API server lists what definitions say, and serves nothing
// of it in a group of its own.
func (s *Services) unserved(gv runtimeschema.GroupVersion) bool {
	return s.Claimed[gv.Group] != "" || slices.Contains(s.Own, gv.Group) && slices.Contains(s.Defined, gv)
}

// aggregatedGroups returns the groups of which another server serves a version.
func (s *Services) aggregatedGroups() []string {
	out := make([]string, 0, len(s.Aggregated))
	for _, gv := range s.Aggregated {
		out = append(out, gv.Group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// kubernetesGroups are those of which an endpoint was recorded on a real API server.
var kubernetesGroups = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, e := range endpoint.All() {
		out[e.Group] = true
	}
	return out
})

// APIServices is the resource that tells which groups another server serves.
func APIServices() runtimeschema.GroupVersionResource {
	return runtimeschema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

// ListServices asks the API server. It must be asked after discovery: what is aggregated by then is in the answer.
func ListServices(ctx context.Context, client dynamic.Interface) (Services, error) {
	list, err := client.Resource(APIServices()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return Services{}, fmt.Errorf("list of API services: %w", err)
	}
	return servicesOf(list.Items), nil
}

func servicesOf(list []unstructured.Unstructured) Services {
	out := Services{Claimed: map[string]string{}}
	for i := range list {
		spec, ok := list[i].Object["spec"].(map[string]any)
		if !ok {
			continue
		}
		group, ok := spec["group"].(string)
		if !ok {
			continue
		}
		version, _ := spec["version"].(string)
		gv := runtimeschema.GroupVersion{Group: group, Version: version}
		switch managed := list[i].GetLabels()[AutoManaged]; {
		case spec["service"] != nil:
			out.Aggregated = append(out.Aggregated, gv)
		case managed == AutoManagedOnStart && kubernetesGroups()[group]:
			out.Own = append(out.Own, group)
		case managed == AutoManagedOnStart:
			out.Claimed[group] = list[i].GetName()
		case managed != "":
			out.Defined = append(out.Defined, gv)
		}
	}
	slices.Sort(out.Own)
	out.Own = slices.Compact(out.Own)
	return out
}
