package review

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// sources are all files that may hold schemas; load tells by their content what they are.
func (o *options) sources() []string { return slices.Concat(o.crds, o.permissions) }

// schema returns the permission schema that the request is decided with. Whatever is wrong with the
// files is an error.
func (o *options) schema(ctx context.Context) (*schema.Schema, error) {
	if o.offline() {
		compiled, errs := load.Offline(o.sources())
		return compiled, o.faults(errs, func(*schema.Error) bool { return true })
	}
	files, errs := load.Files(o.sources())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	docs, err := o.live(ctx)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, t := range files.Topologies {
		own[t.Source] = true
	}
	for _, p := range files.Permissions {
		own[p.Source] = true
	}
	for _, u := range files.Uncovered {
		own[u.Source] = true
	}
	compiled, errs := schema.Compile(docs.Append(files))
	// A fault of the cluster's bears on the kinds that it touches alone, and for those Kind is an error.
	return compiled, o.faults(errs, func(fault *schema.Error) bool { return own[fault.Source] })
}

// live returns what the cluster serves. Who may not read that, can still ask about the built-in kinds
// and those of --crd.
func (o *options) live(ctx context.Context) (schema.Documents, error) {
	config, err := o.config()
	if err != nil {
		return schema.Documents{}, err
	}
	if err := reachable(ctx, config); err != nil {
		return schema.Documents{}, err
	}
	docs, errs := load.Live(ctx, config)
	for _, err := range errs {
		o.warn("%v", err)
	}
	if len(docs.Topologies) > 0 {
		return docs, nil
	}
	o.warn("the cluster's schemas cannot be read: only built-in kinds and those of --crd are known")
	topology, err := load.BuiltIn()
	if err != nil {
		return schema.Documents{}, err
	}
	permissions, err := load.Catalogue(false)
	return schema.Documents{Topologies: []schema.Topology{topology}, Permissions: permissions}, err
}

// reachable tells a cluster that cannot be asked at all from one that does not show everything.
func reachable(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err == nil {
		_, err = client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("cluster: %w: correct --kubeconfig and --context, or decide from files with --grants", err)
	}
	return nil
}

// faults joins the errors that are fatal, and warns of the others. A document about a kind that nobody
// has is never fatal: it may be among many that are given for all reviews.
func (o *options) faults(errs []error, fatal func(*schema.Error) bool) error {
	var faults []error
	for _, err := range errs {
		var fault *schema.Error
		if errors.As(err, &fault) && (fault.Unmatched || !fatal(fault)) {
			o.warn("%v", err)
			continue
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
