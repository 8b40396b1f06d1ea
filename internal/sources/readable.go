package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/allowlist"
)

// Missing is what a snapshot does not have.
type Missing struct {
	// What is what is not known, as the object of a sentence.
	What string
	// Err is the reason. It ends with the cure.
	Err error
}

// OfKinds reports whether only kinds and fields are missing: what decides on a kind that is known is not among it.
func (m *Missing) OfKinds() bool {
	return m.What == ownFields || m.What == otherServers || m.What == customKinds
}

// These are what is not known without the sources that each reads.
const (
	ownFields     = "fields that this API server has, and that kinds of Kubernetes 1.37 have not"
	otherServers  = "kinds of aggregated API servers"
	customKinds   = "custom resources, and the verbs of their fields"
	documentsOwn  = "verbs of PermissionSchemas, and barriers of UncoveredPermissionSets"
	documentsLess = "some verbs of PermissionSchemas or barriers of UncoveredPermissionSets"
)

// Readable reads an API server like Once, as far as its user may. A snapshot with a part missing must not decide on anything: it may lack
// barriers. It is for answers that say what they lack.
func Readable(ctx context.Context, config *rest.Config) (*Snapshot, []Missing, error) {
	server, client, err := readerOf(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	return readable(ctx, server, func(ctx context.Context) ([]*unstructured.Unstructured, error) { return listUndefined(ctx, client) })
}

// readable is Readable for a Config. undefined lists fieldperm's objects if definitions cannot be read.
func readable(ctx context.Context, config Config, undefined func(context.Context) ([]*unstructured.Unstructured, error)) (*Snapshot, []Missing, error) {
	var missing []Missing
	miss := func(what string, err error) {
		if err != nil {
			missing = append(missing, Missing{what, err})
		}
	}
	config.OpenAPI = indexOrNone{config.OpenAPI, func(err error) { miss(ownFields, fmt.Errorf("OpenAPI v3 of the API server: %w", err)) }}
	services, definitions, objects := config.Services, config.Definitions, config.Objects
	config.Services = func(ctx context.Context) (allowlist.Services, error) {
		out, err := services(ctx)
		miss(otherServers, err)
		return out, nil
	}
	isDefined := true
	config.Definitions = func() ([]*Definition, error) {
		out, err := definitions()
		if err != nil {
			isDefined = false
			miss(customKinds, fmt.Errorf("custom resource definitions: %w", err))
		}
		return out, nil
	}
	config.Objects = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		list := objects
		if !isDefined {
			list = undefined
		}
		out, err := list(ctx)
		if len(out) > 0 {
			miss(documentsLess, err)
		} else {
			miss(documentsOwn, err)
		}
		return out, nil
	}
	out, more, err := read(ctx, config)
	return out, append(missing, more...), err
}

// indexOrNone returns an empty index if the index cannot be read.
type indexOrNone struct {
	openapi.ClientWithContext
	miss func(error)
}

func (i indexOrNone) PathsWithContext(ctx context.Context) (map[string]openapi.GroupVersionWithContext, error) {
	out, err := i.ClientWithContext.PathsWithContext(ctx)
	if err != nil {
		i.miss(err)
		return nil, nil
	}
	return out, nil
}

// listUndefined returns the objects of fieldperm's kinds, without knowing whether the kinds are defined.
func listUndefined(ctx context.Context, client dynamic.Interface) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	var errs []error
	for _, resource := range slices.Sorted(maps.Keys(Documents())) {
		objects, err := list(ctx, client.Resource(v1alpha1.GroupVersion.WithResource(resource)))
		if err != nil && !apierrors.IsNotFound(err) {
			name := resource + "." + v1alpha1.GroupVersion.Group
			errs = append(errs, fmt.Errorf("%s: %w", name, unreadable(err, "list on "+name)))
		}
		out = append(out, objects...)
	}
	return out, errors.Join(errs...)
}
