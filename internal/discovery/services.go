package discovery

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fieldperm/fieldperm/schema/load"
)

// Services tells who serves the groups of an API server, by its APIServices.
type Services struct {
	// Aggregated are the groups of which another server serves a version.
	Aggregated []string
	// Own are the groups that are compiled into the API server. It asks no definition for any version of them.
	Own []string
	// Defined are the versions that the API server registered for definitions, served or not.
	Defined []runtimeschema.GroupVersion
}

// unserved reports whether a version is listed only: the API server lists what definitions say, and serves nothing of it in a
// group of its own.
func (s *Services) unserved(gv runtimeschema.GroupVersion) bool {
	return slices.Contains(s.Own, gv.Group) && slices.Contains(s.Defined, gv)
}

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
	var out Services
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
		switch managed := list[i].GetLabels()[load.AutoManaged]; {
		case spec["service"] != nil:
			out.Aggregated = append(out.Aggregated, group)
		case managed == load.AutoManagedOnStart:
			out.Own = append(out.Own, group)
		case managed != "":
			out.Defined = append(out.Defined, runtimeschema.GroupVersion{Group: group, Version: version})
		}
	}
	slices.Sort(out.Aggregated)
	slices.Sort(out.Own)
	out.Aggregated, out.Own = slices.Compact(out.Aggregated), slices.Compact(out.Own)
	return out
}
