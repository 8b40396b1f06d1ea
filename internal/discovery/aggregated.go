package discovery

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// APIServices is the resource that tells which groups another server serves.
func APIServices() runtimeschema.GroupVersionResource {
	return runtimeschema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

// AggregatedGroups asks the API server which groups another server serves, one version of them being
// enough. It must be asked after discovery: what is aggregated by then is in the answer.
func AggregatedGroups(ctx context.Context, client dynamic.Interface) ([]string, error) {
	list, err := client.Resource(APIServices()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list of API services: %w", err)
	}
	return aggregatedGroups(list.Items), nil
}

func aggregatedGroups(services []unstructured.Unstructured) []string {
	var groups []string
	for i := range services {
		spec, ok := services[i].Object["spec"].(map[string]any)
		if !ok || spec["service"] == nil {
			continue
		}
		if group, ok := spec["group"].(string); ok {
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}
