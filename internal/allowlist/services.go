package allowlist

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
	// AutoManaged is the label of APIServices that the API server itself creates (kube-aggregator, pkg/controllers/autoregister).
	// Its value is "true" for the groups of definitions.
	AutoManaged = "kube-aggregator.kubernetes.io/automanaged"
	// AutoManagedOnStart is its value for the groups compiled into the server.
	AutoManagedOnStart = "onstart"
)

// Services describes which server serves each group of an API server, by its APIServices.
//
// An APIService decides reliably to which server a version leads, because the API server itself uses it. Whether a group is
// compiled in is only a label there: users may write the label, and the API server does not restore it. So the label counts only
// for groups of Kubernetes. In any other group, a false label could remove the barriers of a definition.
type Services struct {
	// Aggregated are the versions that another server serves.
	Aggregated []runtimeschema.GroupVersion
	// Own are the groups of Kubernetes that are compiled into the API server. It uses no definition for any version of them.
	Own []string
	// Claimed are the groups that are labelled as compiled in but not known as groups of Kubernetes, each with the name of an
	// APIService that has the label. They may be groups of a newer API server.
	Claimed map[string]string
	// Defined are the versions that the API server registered for definitions, served or not.
	Defined []runtimeschema.GroupVersion
}

// unserved reports whether a version is, or may be, listed but not served: the API server lists the versions of definitions, but
// serves none of them in a group of its own.
func (s *Services) unserved(gv runtimeschema.GroupVersion) bool {
	return s.Claimed[gv.Group] != "" || slices.Contains(s.Own, gv.Group) && slices.Contains(s.Defined, gv)
}

// aggregatedGroups returns the groups with a version that another server serves.
func (s *Services) aggregatedGroups() []string {
	out := make([]string, 0, len(s.Aggregated))
	for _, gv := range s.Aggregated {
		out = append(out, gv.Group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// kubernetesGroups are the groups with an endpoint that was recorded on a real API server.
var kubernetesGroups = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, e := range endpoint.All() {
		out[e.Group] = true
	}
	return out
})

// APIServices returns the resource that describes which groups another server serves.
func APIServices() runtimeschema.GroupVersionResource {
	return runtimeschema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

// ListServices reads the APIServices. Call it after discovery, so that the result includes every group that was aggregated by then.
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
