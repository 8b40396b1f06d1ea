package policies

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// pageSize bounds the objects in one response of the API server.
const pageSize = 250

// Once returns the policies that a Live would have in force if it started now, and warnings. Policies of files replace those of the API server
// with the same name. Once needs list on conditionalpolicies, if they are installed. A faulty policy is an error: a Live that has run for
// longer may have an earlier generation of it in force.
func Once(ctx context.Context, config *rest.Config, files []string) (*Set, []error, error) {
	given, err := Read(files)
	if err != nil {
		return nil, nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("client of the API server: %w", err)
	}
	return once(ctx, given, Config{
		List: func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			stored, err := read(ctx, config)
			return beside(given, stored), err
		},
		Types: func() Types { return Published(served) },
	}, "fieldperm-webhook may have an earlier generation of it in force: correct it")
}

// once compiles the policies of a Config with List and Types. It warns of the policies of files: the others concern the administrator of the API
// server. cure ends the error about a faulty policy.
func once(ctx context.Context, files []*unstructured.Unstructured, c Config, cure string) (*Set, []error, error) {
	c.Synced, c.Compiled = func() bool { return true }, func() {}
	live := New(c)
	if err := live.Refresh(ctx); err != nil {
		return nil, nil, err
	}
	var warnings []error
	for _, state := range live.Objects() {
		if len(state.Faults) > 0 {
			return nil, nil, fmt.Errorf("%w: %s", state.Faults[0], cure)
		}
		if slices.ContainsFunc(files, func(f *unstructured.Unstructured) bool { return f.GetName() == state.Name }) {
			warnings = append(warnings, state.Unmatched...)
		}
	}
	set, err := live.Set()
	return set, warnings, err
}

// All returns the policies of an API server, and those of files in place of those with the same name, whether they are faulty or not. Without
// config it returns those of files.
func All(ctx context.Context, config *rest.Config, files []string) ([]v1alpha1.ConditionalPolicy, error) {
	objects, err := Read(files)
	if err != nil {
		return nil, err
	}
	if config != nil {
		stored, err := read(ctx, config)
		if err != nil {
			return nil, err
		}
		objects = beside(objects, stored)
	}
	out := make([]v1alpha1.ConditionalPolicy, len(objects))
	for i, object := range objects {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &out[i]); err != nil {
			return nil, fmt.Errorf("%s %q: cannot be read: %w: correct it", v1alpha1.ConditionalPolicyKind, object.GetName(), err)
		}
	}
	return out, nil
}

// read returns the policies of an API server, none if it does not serve the kind.
func read(ctx context.Context, config *rest.Config) ([]*unstructured.Unstructured, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	if installed, err := isServed(served); err != nil || !installed {
		return nil, err
	}
	return list(ctx, client)
}

// isServed reports whether the API server serves the kind. A user that may not list policies need not be told of a kind that is not there.
func isServed(client discovery.DiscoveryInterface) (bool, error) {
	resources, err := client.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discovery: %w", err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == v1alpha1.ConditionalPolicyResource }), nil
}

func list(ctx context.Context, client dynamic.Interface) ([]*unstructured.Unstructured, error) {
	resource := v1alpha1.GroupVersion.WithResource(v1alpha1.ConditionalPolicyResource)
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(resource).List(ctx, o)
	})
	pages.PageSize = pageSize
	var out []*unstructured.Unstructured
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if u, ok := object.(*unstructured.Unstructured); ok {
			out = append(out, u)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%[1]s: cannot be read: %[2]w: allow list on %[1]s", resource.GroupResource(), err)
	}
	return out, nil
}
